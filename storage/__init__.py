"""Keeps articles, postings and verdicts: the ``Store`` port and its implementations in memory, on LMDB and on HBase.

Nothing here knows how articles are judged; that is in ``consumer.judge``.
"""
