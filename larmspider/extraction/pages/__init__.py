"""Pages: HTML, XHTML and sitemaps; their links, text, metadata and own fields."""
