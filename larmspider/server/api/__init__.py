"""The API at /api/v1/, its operations, and its client."""
