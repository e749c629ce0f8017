"""Which URLs of a host have nothing new."""
