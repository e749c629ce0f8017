"""Helpers of the crawl in its process: preflight, checkpoint, stop, progress, PageRank, tuning.

An operator's actions are in control/, the state of the crawl in status/, the pages in web/.
"""
