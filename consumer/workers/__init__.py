"""Runs the fingerprint engine, in this process or on worker processes, and loads the word files that it needs.

How a fingerprint is computed is in ``fingerprint``.
"""
