"""Measurements of the consumer on a real Kafka broker, which each of them starts for itself."""
