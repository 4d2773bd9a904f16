"""The report of decisions, on a page and as files."""
