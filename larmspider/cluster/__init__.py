"""Many workers over Redis: who owns which partition of the hosts, and what is kept in Redis.

No Scrapy but in what joins and runs a crawl (joining.py, worker.py, start_urls.py); lua/ has the
scripts that Redis runs.
"""
