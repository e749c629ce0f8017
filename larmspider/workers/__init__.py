"""The processes of ``scrapy workers`` on one machine, and their private redis-server; and one directory of
theirs."""
