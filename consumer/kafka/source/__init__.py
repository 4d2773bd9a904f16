"""Reads topics: as a member of a consumer group, or a range of offsets once."""
