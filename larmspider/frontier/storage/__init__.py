"""Where the frontier lives: the contract of a backend, its records, and LMDB.

The backend shared over Redis is in cluster/; rules of politeness and order are in frontier/.
"""
