"""Removes secrets from everything that dupwatch prints, logs and serves.

A secret is recognised by the name of its setting (``is_secret``), by its form (a token of dupwatch, a URL with a
password or token, an ``Authorization`` header), or because this process read it as a secret (``remember``).
Libraries quote values of settings in their own ways, so texts are redacted where they leave the process, not where they
are composed.
"""

import base64
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from consumer.model.errors import ConfigError

HIDDEN: Final = "*****"
TOKEN_PREFIX: Final = "dupwatch_"  # noqa: S105  # a prefix
"""The prefix of every token, by which tokens are recognised anywhere."""
SECRET_CHARS_MIN: Final = 6
"""Shorter values are recognised only by the name of their setting, because texts may contain them by chance."""
_NAME: Final = re.compile(
    r"passw|passphrase|secret|token|credential|user\.info|\.key$|\.key\.pem$|ssl\.key|oauthbearer\.(config|extensions)",
    re.IGNORECASE,
)
# A password after a colon may contain slashes; hiding too much does no harm.
_IN_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*://)(?:[^\s/?#@:\"'<>]*:[^\s\"'<>]*|[^\s/?#\"'<>]*)@", re.IGNORECASE)
# A URL treated as a path has lost a slash. It must have a user and a password, because paths may contain "@" too.
_IN_PATH: Final = re.compile(r"([a-z][a-z0-9+.-]*:/)(?!/)[^\s/?#@:\"'<>]*:[^\s\"'<>]*@", re.IGNORECASE)
_IN_QUERY: Final = re.compile(
    r"([?&;][\w.-]*(?:token|secret|passw|api[_-]?key|signature|credential)[\w.-]*=)[^&;\s\"'#]+", re.IGNORECASE
)
_IN_HEADER: Final = re.compile(
    r"(authorization['\"]?\s*[:=]\s*['\"]?(?:(?:basic|bearer)\s+)?)[^\s'\",]+", re.IGNORECASE
)
# Also matches truncated tokens.
_TOKEN: Final = re.compile(rf"{TOKEN_PREFIX}[0-9a-f]{{16,}}")
_PASSWORD: Final = re.compile(r"://[^\s/?#@:]*:([^\s]*)@")
_SEPARATOR: Final = re.compile("[=:]")
_PEM_LINE_CHARS_MIN: Final = 16


class _SecretSet:
    """The secrets that this process has read, with a pattern that matches any of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, values: set[str]) -> None:
        with self._lock:
            if not values <= self._values:
                self._values |= values
                # The longest first, because one secret may be part of another.
                ordered = sorted(self._values, key=len, reverse=True)
                self._pattern = re.compile("|".join(map(re.escape, ordered)))

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._pattern = None

    def hide(self, text: str) -> str:
        pattern = self._pattern
        return text if pattern is None else pattern.sub(HIDDEN, text)


_known: Final = _SecretSet()


def is_secret(name: str) -> bool:
    """Return whether a setting with this name has a secret value."""
    return _NAME.search(name) is not None


def redacted(text: str) -> str:
    """Return a text with all secrets hidden that are recognised by their form, or that this process has read."""
    return without_credentials(_known.hide(text))


def without_credentials(text: str) -> str:
    """Return a text in which secrets that are recognised by their form are hidden."""
    redacted_text = _TOKEN.sub(HIDDEN, text) if TOKEN_PREFIX in text else text
    if "://" in redacted_text:
        redacted_text = _IN_URL.sub(rf"\1{HIDDEN}@", redacted_text)
    if ":/" in redacted_text:
        redacted_text = _IN_PATH.sub(rf"\1{HIDDEN}@", redacted_text)
    if "=" in redacted_text:
        redacted_text = _IN_QUERY.sub(rf"\1{HIDDEN}", redacted_text)
    return _IN_HEADER.sub(rf"\1{HIDDEN}", redacted_text)


def without_arguments(text: str, arguments: Sequence[str]) -> str:
    """Return a text that quotes command-line arguments, with all secrets hidden, including those in the arguments.

    A secret of the arguments is the value in ``NAME=VALUE`` or ``NAME:VALUE`` if NAME is a secret setting, or the
    argument after such a name.
    """
    replacements: dict[str, str] = {}
    previous = ""
    for argument in arguments:
        assignment = argument.removeprefix("--set=")
        name, separator, value = _split_assignment(assignment)
        if assignment.startswith("-"):
            # Typer quotes the name of an unknown option, never its value.
            previous = ""
        elif is_secret(previous):
            replacements[argument], previous = HIDDEN, ""
        else:
            if value and is_secret(name):
                replacements[assignment] = f"{name}{separator}{HIDDEN}"
            previous = "" if separator else assignment
    # The longest first, because one secret may be part of another.
    for secret in sorted(replacements, key=len, reverse=True):
        text = text.replace(secret, replacements[secret])
    return redacted(text)


def remember(value: str) -> None:
    """Redact this secret from now on, in all spellings that messages use and that are not too short."""
    _known.add({form for part in _parts(value) for form in _spellings(part) if len(form) >= SECRET_CHARS_MIN})


def remember_settings(settings: Mapping[str, object]) -> None:
    """Redact the values of settings with secret names from now on, and the passwords in URLs of all others."""
    for name, value in settings.items():
        if is_secret(name):
            remember(str(value))
        elif isinstance(value, str):
            remember_credentials(value)


def remember_credentials(text: str) -> None:
    """Redact the passwords of the URLs in a text from now on, even where they are quoted without the URL."""
    for password in _PASSWORD.findall(text):
        remember(password)


def with_secrets(plain: Mapping[str, Any], files: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return plain settings, and settings whose values are read from files and remembered as secrets.

    Raises ``ConfigError``, which names ``where``, for an unreadable file.
    """
    settings: dict[str, Any] = {**plain}
    for name, path in files.items():
        try:
            value = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{where}: the value of {name} cannot be read from {path}: {error}") from error
        remember(value)
        settings[name] = value
    return settings


def forget_all() -> None:
    """Forget every secret. For tests, which run many programs in one process."""
    _known.clear()


def _split_assignment(argument: str) -> tuple[str, str, str]:
    """Return name, separator and value of ``NAME=VALUE`` or ``NAME:VALUE``; without a separator, name only."""
    match = _SEPARATOR.search(argument)
    return (argument, "", "") if match is None else (argument[: match.start()], match[0], argument[match.end() :])


def _parts(value: str) -> Iterator[str]:
    """Yield the value, and parts that may be quoted alone.

    Parts are a password after a user, user and password in Base64, the lines of a key, and the values in a list of
    settings.
    """
    yield value
    user, colon, password = value.partition(":")
    if colon and "\n" not in value:
        yield password
        yield base64.b64encode(f"{user}:{password}".encode()).decode()
    yield from (line for line in value.splitlines() if len(line) >= _PEM_LINE_CHARS_MIN and "-----" not in line)
    yield from (word.partition("=")[2] for word in value.split() if "=" in word.rstrip("="))


def _spellings(value: str) -> set[str]:
    return {value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe=""), quote(value), unquote(value)}
