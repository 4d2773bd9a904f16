"""Dead letters after they were written: listed, shown, and replayed.

How a record becomes one is in ``model.dead_letter``; how it is written is a matter of the sinks.
"""
