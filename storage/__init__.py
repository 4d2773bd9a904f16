"""Stores for articles, postings and verdicts: the ``Store`` port, and its implementations (memory, LMDB, HBase).

Nothing here knows how articles are judged; that is in ``consumer.judge``.
"""
