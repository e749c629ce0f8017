"""One libcurl multi handle fetches everything, within limits, from addresses that are allowed.

The frontier decides when a host gets a request.
"""
