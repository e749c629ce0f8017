"""Crawls that run: processes, nodes, the queue, the history."""
