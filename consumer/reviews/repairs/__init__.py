"""Repairs of stories: a version that is split off, a story that is merged into another one, and their undoing."""
