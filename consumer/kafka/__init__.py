"""What several packages need to talk to Kafka: clients and their settings, topics, groups, offsets, notes, headers.

``sources`` reads articles, ``sinks`` writes verdicts, ``dead_letters`` writes and reads dead letters.
"""
