"""What several packages need to talk to Kafka: client settings, topics, offsets and their notes, headers, groups.

``sources`` reads articles, ``sinks`` writes verdicts, ``dead_letters`` writes and reads dead letters.
"""
