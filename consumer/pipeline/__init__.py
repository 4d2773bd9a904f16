"""The loop of a run, from reading a batch of records to committing it, and the state between batches.

It reads, judges and writes through the ports of ``model``, ``storage`` and ``workers``, and its own.
"""
