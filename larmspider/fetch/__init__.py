"""One libcurl multi handle fetches all HTTP URLs, within limits, from allowed addresses.

file_handler.py and source_handler.py read files, shares and mailboxes.

The frontier decides when a host gets a request.
"""
