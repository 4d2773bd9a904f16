"""Builds each kind of run, and the parts that runs share, from the configuration. It contains no logic of its own.

Only ``cli``, ``doctor``, ``migration`` and the public module ``dupwatch`` import this package. ``migration`` builds its
own run from the same parts.
"""
