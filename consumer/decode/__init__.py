"""From the bytes of a file or a topic to an article: compressions, JSON, Avro and Protobuf values, HTML, times.

Pure except for ``registry``, which fetches schemas, and ``registry_outages``, which waits for it. ``sources`` reads the
bytes.
"""
