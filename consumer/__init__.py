"""Reads articles, judges each one against the articles of the window, emits verdicts."""
