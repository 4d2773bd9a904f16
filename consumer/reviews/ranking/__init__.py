"""Ranks of sources, and the members of stories that are preferred because of them."""
