"""Beside the crawl, in its process: preflight, checkpoint, stop, progress, PageRank, tuning.

What an operator does is control/, how the crawl is doing status/, the pages web/.
"""
