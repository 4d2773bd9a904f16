"""Decides whether an article repeats an earlier one: candidates, comparison, decision, and the protocol around them.

Uses a store; knows nothing of sources and sinks.
"""
