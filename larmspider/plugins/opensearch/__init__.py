"""Sends pages to an index of OpenSearch."""
