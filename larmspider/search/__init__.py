"""How the search index is asked: queries, ranking, hits, counts, suggestions, over one index or
several. No Scrapy. What is written into it is in index/."""
