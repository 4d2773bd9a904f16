"""Tools for stores: inspection, verification, export, comparison, sizing, and releases."""
