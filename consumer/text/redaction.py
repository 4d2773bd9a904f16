"""What must not be shown, and how it is taken out: the one rule for all that dupwatch prints, logs and serves.

Three things make a secret: the name of its setting (``is_secret``), its form (a URL with a password or a token, an
``Authorization`` header), and that this process has read it as one (``remember``). Messages of libraries quote values
of settings in ways of their own, so texts are redacted where they leave the process, not where they are made.
"""

import base64
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

HIDDEN: Final = "*****"
CHARS_MIN: Final = 6
"""Shorter values are hidden by the names of their settings, but not looked for in texts: they are parts of words."""
_NAME: Final = re.compile(
    r"passw|passphrase|secret|token|credential|user\.info|\.key$|\.key\.pem$|ssl\.key|oauthbearer\.(config|extensions)",
    re.IGNORECASE,
)
# With a colon before it a password may have slashes; what is hidden too much is not missed.
_IN_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*://)(?:[^\s/?#@:\"'<>]*:[^\s\"'<>]*|[^\s/?#\"'<>]*)@", re.IGNORECASE)
# As a path, which joins slashes: only with user and password, since paths have "@" too.
_IN_PATH: Final = re.compile(r"([a-z][a-z0-9+.-]*:/)(?!/)[^\s/?#@:\"'<>]*:[^\s\"'<>]*@", re.IGNORECASE)
_IN_QUERY: Final = re.compile(
    r"([?&;][\w.-]*(?:token|secret|passw|api[_-]?key|signature|credential)[\w.-]*=)[^&;\s\"'#]+", re.IGNORECASE
)
_IN_HEADER: Final = re.compile(
    r"(authorization['\"]?\s*[:=]\s*['\"]?(?:(?:basic|bearer)\s+)?)[^\s'\",]+", re.IGNORECASE
)
_PASSWORD: Final = re.compile(r"://[^\s/?#@:]*:([^\s]*)@")
_SEPARATOR: Final = re.compile("[=:]")
_PEM_LINE_CHARS_MIN: Final = 16


class _Known:
    """The secrets that this process has read, and a pattern that finds any of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, values: set[str]) -> None:
        with self._lock:
            if not values <= self._values:
                self._values |= values
                # The longest first: one may be part of another.
                longest = sorted(self._values, key=len, reverse=True)
                self._pattern = re.compile("|".join(map(re.escape, longest)))

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._pattern = None

    def hide(self, text: str) -> str:
        pattern = self._pattern
        return text if pattern is None else pattern.sub(HIDDEN, text)


_known: Final = _Known()


def is_secret(name: str) -> bool:
    """Whether the value of a setting of this name is a secret, whatever it is."""
    return _NAME.search(name) is not None


def redacted(text: str) -> str:
    """The text without what is a secret by its form, and without those that this process has read."""
    return without_credentials(_known.hide(text))


def without_credentials(text: str) -> str:
    """The text without what is a secret by its form."""
    found = text
    if "://" in found:
        found = _IN_URL.sub(rf"\1{HIDDEN}@", found)
    if ":/" in found:
        found = _IN_PATH.sub(rf"\1{HIDDEN}@", found)
    if "=" in found:
        found = _IN_QUERY.sub(rf"\1{HIDDEN}", found)
    return _IN_HEADER.sub(rf"\1{HIDDEN}", found)


def without_arguments(text: str, arguments: Sequence[str]) -> str:
    """The text, which quotes arguments of a command line, without those that are or hold a secret.

    That is ``NAME=VALUE`` and ``NAME:VALUE`` with the name of a secret setting, and what follows such a name alone.
    """
    hidden: dict[str, str] = {}
    before = ""
    for argument in arguments:
        given = argument.removeprefix("--set=")
        name, separator, value = _named(given)
        if given.startswith("-"):
            # Typer quotes the name of an option that there is not, never its value.
            before = ""
        elif is_secret(before):
            hidden[argument], before = HIDDEN, ""
        else:
            if value and is_secret(name):
                hidden[given] = f"{name}{separator}{HIDDEN}"
            before = "" if separator else given
    # The longest first: one may be part of another.
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, hidden[secret])
    return redacted(text)


def remember(value: str) -> None:
    """Take this secret out of every text from now on, in the ways in which messages write it."""
    _known.add({one for part in _parts(value) for one in _written(part) if len(one) >= CHARS_MIN})


def remember_settings(settings: Mapping[str, object]) -> None:
    """Remember those of the settings that are secret by their names, and passwords in the URLs of all others."""
    for name, value in settings.items():
        if is_secret(name):
            remember(str(value))
        elif isinstance(value, str):
            remember_credentials(value)


def remember_credentials(text: str) -> None:
    """Remember the passwords of the URLs in a text: what is made of them, a path for one, may look like no URL."""
    for password in _PASSWORD.findall(text):
        remember(password)


def forget_all() -> None:
    """Forget every secret: for tests, which are many programs in one process."""
    _known.clear()


def _named(argument: str) -> tuple[str, str, str]:
    """Name, separator and value of ``NAME=VALUE`` or ``NAME:VALUE``; the name alone where there is no separator."""
    found = _SEPARATOR.search(argument)
    return (argument, "", "") if found is None else (argument[: found.start()], found[0], argument[found.end() :])


def _parts(value: str) -> Iterator[str]:
    """The value, and what of it may be quoted alone: a password behind its user, lines of a key, values of a list."""
    yield value
    user, colon, password = value.partition(":")
    if colon and "\n" not in value:
        yield password
        yield base64.b64encode(f"{user}:{password}".encode()).decode()
    yield from (line for line in value.splitlines() if len(line) >= _PEM_LINE_CHARS_MIN and "-----" not in line)
    yield from (word.partition("=")[2] for word in value.split() if "=" in word.rstrip("="))


def _written(value: str) -> set[str]:
    return {value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe=""), quote(value), unquote(value)}
