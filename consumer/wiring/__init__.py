"""Builds each kind of run, and the parts that runs share, from the configuration.

Of the installed packages, only ``cli``, ``doctor``, ``migration`` and the public module ``dupwatch`` import this one.
``migration`` builds its own run from the same parts.
"""
