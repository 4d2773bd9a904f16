"""Moves a running group of consumers to a store with other settings, and builds the run that does so."""
