"""Decides which characters count as the same: folding, look-alikes, Chinese scripts, decorations, letters, figures."""
