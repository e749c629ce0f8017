"""Turns a response body into a Page: links, title, text, metadata. Each family of formats has a
module.

Pure: no network, no Scrapy. ``formats.extractor_for("text/html")`` is the way in; html.py is the
first extractor, extract_plain_text in formats.py the smallest.
"""
