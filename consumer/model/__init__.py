"""What every part speaks of: records, articles, verdicts, dead letters, the ports between parts, and errors.

Types only; no input or output, and no imports from other packages of ``consumer``.
"""
