"""Measures thresholds on labelled and reviewed pairs. Pure functions; ``cli.evaluation`` reads the pairs and prints."""
