"""Text for people and machines: redaction of secrets, visible control characters, times, durations, differences."""
