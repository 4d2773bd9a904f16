"""Failures between this process and HBase, and the store's errors that they become.

A request fails in one of two ways. Neither exception leaves this package:

- ``RequestDenied``: HBase answered with an error that its interface declares. The connection is intact.
- ``ConnectionLost``: anything else. Whether HBase carried out the request is unknown. The connection is discarded.

``AnswerTooBig`` is not a failure: the caller had limited the answer.
"""

from typing import Final

from storage.errors import StoreDamaged, StoreError, StoreRefused

_CHARS_MAX: Final = 300
_INIT_COMMANDS: Final = "Run: dupwatch store init --apply"


class ConnectionLost(Exception):  # noqa: N818  # it is what became of the connection
    """A connection failed during a request, or no connection could be opened or became free in time."""


class RequestDenied(Exception):  # noqa: N818  # it is what HBase did
    """An error with which HBase answered: it will not, or cannot now, carry out a request.

    ``text`` is the whole message.
    """

    def __init__(self, text: str) -> None:
        super().__init__(first_words(text))
        self.text = text


class RowTooBig(StoreError):  # noqa: N818  # it is what the row is
    """A row that is too big for one answer of HBase; it can be read in pieces."""


class AnswerTooBig(Exception):  # noqa: N818  # it is what the answer was
    """An answer that exceeds the caller's limit.

    The rest still arrives on the connection, which is therefore discarded.
    """


_PERMANENT: Final[tuple[tuple[str, type[StoreError], str], ...]] = (
    ("NoSuchColumnFamilyException", StoreRefused, f"A table of {{place}} lacks a family: {{why}}. {_INIT_COMMANDS}"),
    ("AccessDeniedException", StoreRefused, "The gateway of the store {place} lacks a permission: {why}."),
    ("RowTooBigException", RowTooBig, "A row of the store {place} is too big to be read: {why}."),
    ("KeyValue size too large", StoreError, "A cell is too large for the store {place}: {why}."),
)
"""Words in HBase's answers to requests that need not be repeated, and the error that each becomes."""


def permanent_error(denied: RequestDenied, place: object) -> StoreError | None:
    """Return the store's error if repeating the request would not help, else None."""
    for marker, error, sentence in _PERMANENT:
        if marker in denied.text:
            return error(sentence.format(place=place, why=str(denied).rstrip(".")))
    return None


def damage_error(what: str, why: object) -> StoreDamaged:
    """Return the store's error for bytes in HBase that this program did not write; ``what`` says where they are."""
    return StoreDamaged(
        f"{what} is damaged: {why}. Restore the tables of the store from a snapshot, or name another store."
    )


def text_of(error: BaseException) -> str:
    """Return the message of an exception. In exceptions of the Thrift library the message may be bytes."""
    message = getattr(error, "message", None)
    if isinstance(message, bytes):
        return message.decode(errors="replace")
    if isinstance(message, str):
        return message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    words = ", ".join(str(part) for part in error.args)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def first_words(text: str) -> str:
    """Return the first line, shortened to fit into a sentence; the rest is a trace of the server's code."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _CHARS_MAX else line[:_CHARS_MAX] + " ..."
