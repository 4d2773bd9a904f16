"""Checks of a configuration and everything it names, each finding with a remedy, and watching running consumers.

Nothing here changes anything.
"""
