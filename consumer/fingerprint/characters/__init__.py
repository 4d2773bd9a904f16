"""Decides which characters count as the same: equality, letters, look-alikes, Chinese scripts, decorations."""
