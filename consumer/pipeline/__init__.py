"""The loop of a run, from reading a batch of records to committing it, and its state between batches.

It knows sources, sinks and stores only through the ports in ``model`` and ``storage``.
"""
