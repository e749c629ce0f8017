"""Searching one or several indexes: queries, ranking, hits, counts, suggestions. No Scrapy. The
writing side is index/."""
