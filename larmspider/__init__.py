"""larmspider: LARM, the Lucene project's intranet crawler, as a Scrapy project."""

__version__ = "0.1.0"
