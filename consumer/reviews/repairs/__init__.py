"""Repairs of stories: splitting a version off, merging a story into another one, and undoing either."""
