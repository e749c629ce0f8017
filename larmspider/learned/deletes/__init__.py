"""Decides when a missing page leaves the search."""
