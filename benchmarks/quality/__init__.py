"""How good verdicts are: exact pairs, feeds to measure on, and the comparison of the two; files in, files out."""
