"""Measurements on HBase, at sizes that no feed of a test has."""
