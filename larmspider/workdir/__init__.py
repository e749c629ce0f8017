"""LARM_DIR: claimed by one crawl, described in crawl.json, with a folder for each worker.

What single stores and the frontier write into it is theirs.
"""
