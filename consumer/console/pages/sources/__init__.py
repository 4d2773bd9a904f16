"""What pages say of sources: their ranks, the articles that are preferred because of them, and how many take part."""
