"""Tells an operator what waits for a decision, by a command or a webhook."""
