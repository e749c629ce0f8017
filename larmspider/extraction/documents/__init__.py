"""Readers of documents that are not markup, a file a family; none runs in the crawl's process.

Each has ``extract(body, url, content_type) -> Page`` and raises Unread. formats.py finds the reader
of another format that a reader needs. process.py starts the process and sets its limits.
"""
