"""The pages that look up an article, try a text, and report a missed copy."""
