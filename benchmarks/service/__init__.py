"""Measurements of the HTTP service."""
