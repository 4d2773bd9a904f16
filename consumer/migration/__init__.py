"""Moves a running group of consumers to a store with other settings. Building it is part of it; commands are not."""
