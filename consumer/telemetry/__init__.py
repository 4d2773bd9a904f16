"""Listens to a run: metrics, health, logs and traces. ``pages`` serves metrics and health."""
