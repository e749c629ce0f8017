"""Sends pages to S3, Google Cloud Storage, Azure or a folder."""
