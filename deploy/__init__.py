"""Runs dupwatch and the servers that it needs."""
