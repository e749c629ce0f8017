"""The demo intranet: some fifty pages of a small firm, with the traps that intranets have."""
