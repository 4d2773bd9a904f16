"""What is told of a run: metrics, health, logs and spans."""
