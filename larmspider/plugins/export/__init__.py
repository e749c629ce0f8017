"""Writes a crawl into one file: JSON lines, CSV, Parquet, WARC or GraphML."""
