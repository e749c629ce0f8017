"""The frontier: known and queued URLs, hosts in turn, politeness, robots.txt, slots. No Scrapy.

storage/ keeps it on disk, scheduler/ connects it to Scrapy, cluster/ to other workers.
"""
