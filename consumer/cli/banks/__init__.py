"""Commands about banks of known texts."""
