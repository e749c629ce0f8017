"""Finds the charset and the language of a text, its words, and how alike two texts are."""
