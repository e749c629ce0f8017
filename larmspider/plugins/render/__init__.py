"""Runs pages through Chromium before they are read."""
