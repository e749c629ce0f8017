"""Readers of documents that are no markup, a file a family; none runs in the crawl's process.

Each has ``extract(body, url, content_type) -> Page`` and raises Unread. What a reader needs for
another format it asks formats.py for. Starting the process and its limits are process.py's.
"""
