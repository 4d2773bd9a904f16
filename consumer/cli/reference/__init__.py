"""Generators of the reference pages in ``docs``: settings, commands and events."""
