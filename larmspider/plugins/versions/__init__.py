"""Shows the versions of a page, and what changed."""
