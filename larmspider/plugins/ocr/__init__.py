"""Reads scanned pages with tesseract."""
