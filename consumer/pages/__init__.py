"""What a run shows over HTTP: health, metrics, and its latest flags side by side."""
