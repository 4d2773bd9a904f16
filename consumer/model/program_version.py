"""The version of dupwatch itself; articles have versions of their own."""

from functools import cache
from importlib import metadata


@cache
def program_version() -> str:
    """Return the version in the metadata of the installed package, as ``dupwatch --version`` prints it."""
    return metadata.version("dupwatch")
