"""A crawl read from outside, also while it runs: its directory, its workers' directories, its logs.

Nothing here writes into a crawl, but for log_index/, a cache beside the logs.
"""
