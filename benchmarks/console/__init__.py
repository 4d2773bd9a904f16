"""Measurements of the moderators' console."""
