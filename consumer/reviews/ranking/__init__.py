"""Ranks of sources, and the preferred members of stories that follow from them."""
