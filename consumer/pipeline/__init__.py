"""The loop of a run, from reading a batch of records to committing it, and its state between batches.

It reads, judges and writes through ports: those of ``model``, ``storage`` and ``workers``, and its own.
"""
