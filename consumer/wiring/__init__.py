"""The only place where parts are put together: each kind of run, and the parts that it is built of.

A command calls one of the runs here; nothing but ``cli``, ``doctor`` and ``migration`` imports this package.
"""
