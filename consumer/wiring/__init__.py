"""Builds each kind of run from the configuration, and the parts that runs share; what they do is elsewhere.

Only ``cli``, ``doctor`` and ``migration`` import this package. ``migration`` builds its own run from the same parts.
"""
