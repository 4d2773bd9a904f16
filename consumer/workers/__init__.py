"""Runs the fingerprint engine in this process or in worker processes, and loads its word files.

``consumer.fingerprint`` computes the fingerprints.
"""
