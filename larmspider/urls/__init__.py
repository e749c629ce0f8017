"""URLs as strings: canonical form, host resolver, patterns. Pure: no network, no Scrapy."""
