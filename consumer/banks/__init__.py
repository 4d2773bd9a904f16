"""Known texts: banks of texts that do not expire, and the articles that repeat them.

Start with ``bank.py``, which says what a bank is, and ``index.py``, which finds its items.
"""
