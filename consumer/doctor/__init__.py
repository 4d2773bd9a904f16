"""Checks of a configuration and everything it names, with a remedy for each problem, and views of running consumers.

All of them only read.
"""
