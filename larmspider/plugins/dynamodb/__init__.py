"""Sends pages to DynamoDB."""
