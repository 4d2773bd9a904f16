"""``dupwatch evaluate``: how well thresholds and reviews agree."""
