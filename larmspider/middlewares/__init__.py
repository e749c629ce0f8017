"""The filters, one file each, and what connects them to Scrapy; settings.py has their order.

A rule knows no Scrapy (url_filter.py), so that ``scrapy explain`` can use the same object.
"""
