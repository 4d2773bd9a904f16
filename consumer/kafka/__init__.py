"""All that talks to Kafka: clients and their settings, topics, groups, offsets, notes.

``source`` reads articles, ``sink`` writes verdicts and dead letters.
"""
