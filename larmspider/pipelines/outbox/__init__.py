"""The outbox: pages on their way to receivers (SQL, search servers, object stores).

A receiver is one file. The crawl writes spool.py's entries; sender.py, a process, hands them over.
"""
