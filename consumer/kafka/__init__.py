"""Kafka: clients and their settings, topics, groups, offsets, and the notes stored with offsets.

``source`` reads articles, ``sink`` writes verdicts and dead letters.
"""
