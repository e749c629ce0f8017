"""Which URLs of a host are one page."""
