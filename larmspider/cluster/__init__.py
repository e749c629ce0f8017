"""Many workers over Redis: who owns which partition, and what is kept there.

No Scrapy here but in what joins a crawl (joining.py, start_urls.py); the scripts Redis runs: lua/.
"""
