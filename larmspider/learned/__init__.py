"""Everything that a crawl learns about hosts. No Scrapy.

Each module has a Part of the frontier (frontier/part.py).
learning.py puts the Parts together; factory.py makes them from the settings.
"""
