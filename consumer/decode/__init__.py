"""From the bytes of a file or a topic to an article: compressions, JSON, Avro and Protobuf values, HTML, times.

Pure except ``registry``, which fetches schemas. ``sources`` reads the bytes.
"""
