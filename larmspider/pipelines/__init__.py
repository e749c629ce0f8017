"""The storage chain, one file a store; settings.py has their order.

What reads the stores again is crawl/ and reports/.
"""
