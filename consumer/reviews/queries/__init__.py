"""The parts that statements are built from."""
