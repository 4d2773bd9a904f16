"""Measures thresholds on labelled and reviewed pairs. Pure; ``cli.evaluation`` reads the pairs and prints."""
