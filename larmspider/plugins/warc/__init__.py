"""WARC files: written during a crawl, imported, checked and repaired."""
