"""Parses spans of time as options have them: 90d, 12h, 30m."""

import re
from datetime import timedelta
from typing import Final

from consumer.model.errors import ConfigError

DURATION_HELP: Final = "30m, 12h or 90d"
"""How to write a span of time on the command line, for help and errors."""
_FORM: Final = re.compile(r"([0-9]{1,6})([mhd])")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def option_duration(option: str, text: str) -> timedelta:
    """Parse the span of time of an option. Raises ``ConfigError``."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ConfigError(f"{option}: {text!r} is not a span of time; write it as {DURATION_HELP}")
    return int(found[1]) * _UNITS[found[2]]


def shown_duration(span: timedelta) -> str:
    """Return a span of whole days as an option has it."""
    return f"{span.days}d"
