"""LARM_DIR: claimed by one crawl, described by its manifest, with a directory for each worker.

What stores and the frontier write there is theirs; frames.py reads their logs, compressed or not;
locks and atomic replacement are in files.py.
"""
