"""Many workers over Redis: the owners of partitions of hosts, and the data in Redis.

Only joining.py, worker.py and start_urls.py, which join and run a crawl, use Scrapy. lua/ has the
scripts that Redis runs.
"""
