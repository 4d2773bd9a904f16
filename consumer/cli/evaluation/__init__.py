"""``dupwatch evaluate``: the quality of thresholds, measured on labelled or reviewed pairs."""
