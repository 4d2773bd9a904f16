"""The loop of a run, from reading a batch of records to committing it, and its state between batches.

It reads, judges and writes through ports: those of ``model``, ``storage``, ``workers`` and ``dead_letters``, and its
own. What only a run over topics has, its offsets, notes and the limit on bad records of a partition, is here too, in
the terms of ``kafka.offset_metadata`` and without a client.
"""
