"""When a page that is gone leaves the search."""
