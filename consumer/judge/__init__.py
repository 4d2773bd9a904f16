"""Decides whether an article repeats an earlier one: candidates, comparison, decision, and the protocol around them.

It knows a store, and no source or sink.
"""
