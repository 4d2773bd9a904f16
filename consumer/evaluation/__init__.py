"""Measuring thresholds on labelled pairs. Pure; the command that reads and prints is ``cli.evaluate``."""
