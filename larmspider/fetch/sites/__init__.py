"""Settings of single hosts: passwords, certificates, proxies, headers, from LARM_SITES_FILE.

How a fetch uses them is curl.py; what all hosts have in common is fetch/.
"""
