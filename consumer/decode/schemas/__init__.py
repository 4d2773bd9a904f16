"""Avro and Protobuf values, and the registry that has their schemas."""
