"""LARM_DIR: claimed by one crawl, described by its manifest, with a directory for each worker.

Stores and the frontier own their files there. frames.py reads logs, compressed or not; files.py has
locks and atomic replacement.
"""
