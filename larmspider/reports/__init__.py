"""The findings of a crawl, as plain data: for the web pages, the commands and the report alike."""
