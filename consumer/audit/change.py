"""A change of state, and the line of JSON that records it. Pure."""

from typing import Final

import msgspec

from consumer.text.timestamps import rfc3339
from consumer.text.visible import cut, for_terminal

SCHEMA: Final = "dupwatch.audit/1"
ID_CHARS_MAX: Final = 512
"""No id of an article is longer."""
TEXT_CHARS_MAX: Final = 128
"""Longest text of every other field. What is longer is cut, and ends with an ellipsis."""
LINE_BYTES_MAX: Final = 16 * 1024
"""No line is longer, whatever is in its fields: a character takes twelve bytes at most."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Who changed what, when and from where. None where there is no such thing, on the command line for example."""

    at_ms: int
    """When the change was made, in milliseconds since 1970."""
    token: str | None = None
    """The name of the token, never its secret."""
    owner: str
    """Whose token it is, or who ran the command."""
    address: str | None = None
    """Where the request came from."""
    action: str
    """What was asked for: tokens.add, articles.release."""
    id: str
    """What it was asked for: an article's id, or a token's name."""
    result: str
    """What came of it."""
    request_id: str | None = None
    """The id of the request, which its answer and the log have too."""


def line_of(change: Change) -> bytes:
    r"""Return the line of a change, with its line end; at most ``LINE_BYTES_MAX`` bytes.

    Control and format characters are written as ``\uXXXX``, so that no reader sees a line end or an escape sequence in
    it. What is not UTF-8 is written with Python's escapes.
    """
    fields = {name: _bounded(name, value) for name, value in msgspec.structs.asdict(change).items() if name != "at_ms"}
    line = {"schema": SCHEMA, "at": rfc3339(change.at_ms)} | fields
    return for_terminal(msgspec.json.encode(line)) + b"\n"


def _bounded(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    bounded = cut(value, ID_CHARS_MAX if name == "id" else TEXT_CHARS_MAX)
    return bounded.encode(errors="backslashreplace").decode()
