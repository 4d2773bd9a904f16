"""Tools for stores: inspection, verification, export, comparison, sizing, releases, and look-ups of bank items."""
