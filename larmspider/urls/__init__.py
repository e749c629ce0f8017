"""URLs as strings: canonical form, host resolver, patterns, media types by name.

Pure: no network, no Scrapy.
"""
