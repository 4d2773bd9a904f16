"""From the bytes of a file or a topic to an article: compressions, JSON, Avro and Protobuf values, HTML, times.

Pure except for ``schemas.registry``, which fetches schemas and waits for them. ``files`` and ``kafka`` read the bytes.
"""
