"""Writes verdicts, the clean feed and dead letters to topics, with or without transactions."""
