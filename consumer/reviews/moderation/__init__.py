"""Helps people decide: reasons to choose from, and a flag for each person that nobody else has."""
