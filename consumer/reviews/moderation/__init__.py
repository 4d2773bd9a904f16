"""What helps people decide: reasons to choose from, and a flag for each of them that nobody else has."""
