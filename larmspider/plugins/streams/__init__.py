"""Sends pages to a stream of Redis, NATS or Kafka."""
