"""Checks a configuration and everything it names before a run does, and says what to do about each finding."""
