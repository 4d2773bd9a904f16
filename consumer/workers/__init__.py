"""Computes fingerprints, in this process or on worker processes, with the words of the user's own files."""
