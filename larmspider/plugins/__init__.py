"""Optional parts: each folder is a plugin, which the core loads by name (larmspider/plugin.py)."""
