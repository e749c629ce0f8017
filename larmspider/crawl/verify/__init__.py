"""Checks the files of a crawl: `scrapy verify`. It only reads; control/repair.py repairs."""
