"""The web layer of the HTTP service, the console and consumers' pages: access, tokens, limits, problems, servers."""
