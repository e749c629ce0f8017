"""Checks what is on the disk of a crawl: `scrapy verify`. It reads, and control/repair.py mends."""
