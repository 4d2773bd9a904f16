"""Text for people and machines: redaction of secrets, control characters made visible, times, spans, differences."""
