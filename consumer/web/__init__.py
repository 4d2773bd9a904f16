"""The shared web layer: access, tokens, certificates, limits, problems, and the servers of consoles and consumers."""
