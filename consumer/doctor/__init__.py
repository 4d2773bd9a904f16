"""Checks of a configuration and everything it names, each finding with a remedy. Nothing here changes anything."""
