"""Commands about single articles and texts."""
