"""One libcurl multi handle fetches everything, within limits, from addresses that are allowed.

When a host may be asked is the frontier's.
"""
