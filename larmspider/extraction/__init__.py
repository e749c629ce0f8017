"""A response body becomes a Page: links, title, text, metadata; one module a family of formats.

Pure: no network, no Scrapy. ``registry.extractor_for("text/html")`` is the way in; html.py is the
first extractor and plain_text.py the smallest, the one to copy for a new format.
"""
