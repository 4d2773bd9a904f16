"""What several parts need to talk to Kafka: client settings, topics, offsets and what is kept beside them, headers.

Reading articles is in ``sources``, writing verdicts in ``sinks``.
"""
