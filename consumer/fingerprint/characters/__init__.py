"""What counts as the same character: folding, look-alikes, both Chinese scripts, decorations, letters and figures."""
