"""Decoding: turns the bytes of files and topics into articles. Compressions, JSON, Avro, Protobuf, HTML, times.

Everything here is pure except ``schemas.registry``, which fetches schemas and waits for them. ``files`` and ``kafka``
read the bytes.
"""
