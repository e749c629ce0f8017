"""The search index: Tantivy, what is written into it and how it is asked. No Scrapy."""
