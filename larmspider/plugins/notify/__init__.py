"""Tells an operator about pending decisions, by a command or a webhook."""
