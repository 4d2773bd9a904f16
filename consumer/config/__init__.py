"""The configuration: its sections and limits, and how it is read and printed.

Nothing is built here; ``wiring`` builds the parts of a run.
"""
