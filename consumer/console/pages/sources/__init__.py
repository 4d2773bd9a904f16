"""Ranks of sources, the preferred articles that follow from them, and the number of sources of a story."""
