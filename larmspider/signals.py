"""Signals of ours, beside Scrapy's."""

checkpoint = object()
"""No arguments; sent by extensions/checkpoint.py. Each store puts what it holds on disk: when all
receivers have returned, everything up to now is there. A receiver may be a coroutine."""
