"""HTML and web pages: parsing, repair, and extraction of the whole visible text or of the article alone."""
