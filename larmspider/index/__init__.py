"""Writing the search index: Tantivy's documents, link texts, pages that wait. No Scrapy. The
reading side is search/."""
