"""A crawl read from outside, also while it runs: its directory, its workers' directories, its logs.

This room writes nothing into a crawl, except log_index/, a cache beside the logs.
"""
