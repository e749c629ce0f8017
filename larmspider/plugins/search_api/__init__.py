"""Answers a part of OpenSearch's search API: /search/_search."""
