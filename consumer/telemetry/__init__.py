"""Observes a run: metrics, health, logs and traces. ``health_pages`` serves metrics and health."""
