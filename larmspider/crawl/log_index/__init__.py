"""A small index of the logs: the places of a URL's lines in links.log, store.log and fetch.log.

A log is searched at about a second a gigabyte, and a crawl of 100,000 pages has three gigabytes of
links. The index answers in microseconds, and knows the most linked pages and the broken links.
Another process makes it beside the crawl, and continues where it ended the last time.

    logs.idx/index.sqlite     the tables of index.py: SCHEMA
    logs.idx/writer.lock      held by the process that brings the index up to date

All its content comes from the logs: if deleted, it is made again. A rebuild of 14 million link
lines (100,000 pages, 2.3 GB) takes 162 s of CPU, 170 MB of memory and 318 MB on disk; the LMDB
environment of our own records that it replaces took 140 s, 1.1 GB and 820 MB.
"""
