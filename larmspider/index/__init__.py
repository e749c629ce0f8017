"""What is written into the search index: documents of Tantivy, link texts, pages that wait. No
Scrapy. How it is asked is in search/."""
