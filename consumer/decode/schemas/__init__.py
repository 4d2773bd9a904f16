"""Avro and Protobuf values, and the registry of their schemas."""
