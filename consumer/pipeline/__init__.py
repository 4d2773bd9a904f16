"""The loop of a run, from a batch of records to its commit, and what it keeps between batches.

Sources, sinks and stores come in through the ports of ``model`` and ``storage``.
"""
