"""Scrapy's scheduler over frontier/: Requests in and out, leases, robots.txt, checkpoints.

The rules of the frontier itself do not belong here, because they know no Scrapy.
"""

from larmspider.scheduler.scheduler import FrontierScheduler

__all__ = ["FrontierScheduler"]
