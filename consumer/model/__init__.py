"""The types that all parts share: records, articles, verdicts, dead letters, the ports between parts, and errors.

No input or output, and no imports from other packages of ``consumer``.
"""
