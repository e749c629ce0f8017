"""LARM_DIR: claimed by one crawl, described by its manifest, with a directory for each worker.

What stores and the frontier write there is theirs; locks and atomic replacement are in files.py.
"""
