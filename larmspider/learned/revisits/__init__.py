"""Which pages are visited again, and when."""
