"""HTML and web pages: parsed, repaired, and read as a reader would, whole or the article alone."""
