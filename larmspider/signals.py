"""Signals of ours, beside Scrapy's.

``checkpoint`` (no arguments): sent by extensions/checkpoint.py. Each store flushes what it holds,
so that everything up to now is on disk when all receivers have returned. Receivers may be coroutines.
"""

checkpoint = object()
