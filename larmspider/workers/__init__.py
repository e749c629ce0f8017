"""The processes of ``scrapy workers`` on one machine, and their private redis-server; and how their
directories become one."""
