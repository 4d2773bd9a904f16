"""Python's module for zstd, wherever this version of Python has it: tests write what dupwatch reads."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    # As a module: mypy does not look into a namespace package.
    import backports.zstd as zstd  # noqa: PLR0402

__all__ = ["zstd"]
