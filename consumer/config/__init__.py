"""The configuration: its sections and their limits, how it is read, and how it is printed.

Nothing here builds anything; ``wiring`` does.
"""
