"""Runs the processes of ``scrapy workers`` on one machine and their private redis-server; merges
the workers' directories."""
