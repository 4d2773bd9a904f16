"""The certificates that servers show: loaded, loaded again when they change, and until when they are valid."""
