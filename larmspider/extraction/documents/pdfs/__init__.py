"""PDF: its text, and its objects (forms, notes, files)."""
