"""From the bytes of a record to an article: JSON, Avro and Protobuf values, HTML bodies, publication times.

Pure but for ``registry``, which fetches schemas. Reading the bytes is a matter of ``sources``.
"""
