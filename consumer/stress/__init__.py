"""Sends a generated feed at a given rate, and measures how long each article waits for its verdict."""
