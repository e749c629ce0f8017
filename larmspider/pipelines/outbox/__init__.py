"""The outbox: what is stored elsewhere (SQL, search servers, object stores), on its way there.

A receiver is one file. The crawl writes spool.py's entries; sender.py, a process, hands them over.
"""
