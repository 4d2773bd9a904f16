"""The HTTP pages of a consumer: health, metrics, and the latest flags with their evidence."""
