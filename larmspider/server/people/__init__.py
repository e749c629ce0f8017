"""Who may do what: users, roles, tokens, groups."""
