"""A response body becomes a Page: links, title, text, metadata; one module a family of formats.

Pure: no network, no Scrapy. ``formats.extractor_for("text/html")`` is the way in; html.py is the
first extractor, extract_plain_text in formats.py the smallest.
"""
