"""What goes wrong between this process and HBase, and what that means to whoever uses the store.

Two kinds inside of this package; neither leaves it:

- ``Denied``: HBase answered with an error that its interface declares. The connection is sound.
- ``Lost``: anything else. Whether HBase did what was asked is unknown, and the connection is thrown away.
"""

from typing import Final

from storage.errors import StoreDamaged, StoreError, StoreRefused

_WORDS_MAX: Final = 300
_INIT_COMMANDS: Final = "dupwatch store init --apply makes what is missing"


class Lost(Exception):  # noqa: N818  # it is what became of the connection
    """A connection failed in the middle of a question, or could not be made."""


class Denied(Exception):  # noqa: N818  # it is what HBase did
    """HBase declared that it will not, or cannot just now. ``text`` is all that it said."""

    def __init__(self, text: str) -> None:
        super().__init__(first_words(text))
        self.text = text


class RowTooBig(StoreError):  # noqa: N818  # it is what the row is
    """HBase sends no row of that size at once; it can be read in pieces."""


class AnswerTooBig(Exception):  # noqa: N818  # it is what the answer was
    """An answer grew over what its caller would take. The connection, which holds the rest of it, is thrown away."""


_PERMANENT: Final[tuple[tuple[str, type[StoreError], str], ...]] = (
    ("NoSuchColumnFamilyException", StoreRefused, f"A table of {{place}} lacks a family: {{why}}. {_INIT_COMMANDS}."),
    ("AccessDeniedException", StoreRefused, "The gateway of the store {place} may not do that: {why}."),
    ("RowTooBigException", RowTooBig, "A row of the store {place} is too big to be read: {why}."),
    ("KeyValue size too large", StoreError, "The store {place} takes no cell of that size: {why}."),
)
"""What HBase says when asking again would not help, and what it means."""


def permanent_error(denied: Denied, place: object) -> StoreError | None:
    """The store's error where asking again would not help, else None."""
    for sign, error, sentence in _PERMANENT:
        if sign in denied.text:
            return error(sentence.format(place=place, why=str(denied).rstrip(".")))
    return None


def damaged(what: str, why: object) -> StoreDamaged:
    """The store's error for bytes that HBase has and this program did not write; ``what`` says where they are."""
    return StoreDamaged(
        f"{what} is damaged: {why}. Restore the tables of the store from a snapshot, or name another store."
    )


def text_of(error: BaseException) -> str:
    """What an exception of the Thrift library says. Its messages may be bytes, and then ``str()`` of it fails."""
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
    """The first line, cut to what a sentence can hold: what follows is a trace of the server's code."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _WORDS_MAX else line[:_WORDS_MAX] + " ..."
