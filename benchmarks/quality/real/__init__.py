"""Detectors side by side on public sets of real texts, and ways of retrieval on their fingerprints."""
