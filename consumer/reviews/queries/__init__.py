"""What statements are built from."""
