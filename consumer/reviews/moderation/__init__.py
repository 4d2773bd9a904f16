"""Support for moderators: reasons to choose from, and a next flag that nobody else has open."""
