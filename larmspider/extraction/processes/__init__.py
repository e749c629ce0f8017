"""The processes that read pages and documents, and how hosts share them."""
