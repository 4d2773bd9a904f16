"""Commands that judge, serve or move a feed."""
