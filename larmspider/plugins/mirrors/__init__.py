"""Finds hosts that have the same pages."""
