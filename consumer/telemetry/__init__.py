"""What is told about a run: metrics, health, logs and traces. Serving it is a matter of ``pages``."""
