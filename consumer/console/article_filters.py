"""What templates show of an article's fields, beyond plain text."""

import re
from typing import Final
from urllib.parse import urlsplit

from consumer.text.visible import one_line

_HOST_CHARS_MAX: Final = 60
_LANG: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


def host(url: str) -> str:
    """Return the host of a URL that ``safe_url`` let through."""
    return one_line(urlsplit(url).hostname or "", _HOST_CHARS_MAX)


def lang_tag(lang: str) -> str | None:
    """Return a language that an article declares, where it may stand in the attribute ``lang``."""
    return lang if _LANG.fullmatch(lang) else None
