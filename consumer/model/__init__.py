"""The types that all packages share: records, articles, verdicts, dead letters, ports and errors.

This package does no input or output, and imports no other package of ``consumer``.
"""
