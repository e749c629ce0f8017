"""Which URLs of a host say nothing that is new."""
