"""Pairs of articles and what people said of them: reviewed flags and near misses, and reported copies."""
