"""Known texts: banks of texts that do not expire, and matching articles with them.

Start with ``bank.py``, which defines a bank, and ``index.py``, which finds its items.
"""
