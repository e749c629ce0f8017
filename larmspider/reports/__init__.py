"""What a crawl has to tell, as plain data: for the web pages, the commands and the report alike."""
