"""The frontier: known and queued URLs, hosts in turn, politeness, robots.txt, slots. No Scrapy.

On disk it is storage/, for Scrapy scheduler/, for many workers cluster/.
"""
