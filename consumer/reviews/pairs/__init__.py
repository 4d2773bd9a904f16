"""Pairs of articles that people have judged: reviewed flags and near misses, and reported copies."""
