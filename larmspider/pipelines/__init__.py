"""The storage chain, one file a store; settings.py has their order.

crawl/ and reports/ read the stores.
"""
