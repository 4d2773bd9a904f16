"""Tools for a store: inspection and verification, export, comparison of two stores, releases."""
