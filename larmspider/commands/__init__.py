"""One command a file, thin: arguments, a call into the rooms below, text or JSON."""
