"""The errors that callers can catch."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from consumer.model.errors import BadRecord, DupwatchError, StoreBroken, StoreMismatch
from consumer.model.errors import ConfigError as WrongConfig
from consumer.text.visible import cut
from storage.errors import StoreError as StoreFailed

_ID_CHARS_MAX: Final = 256


class Error(Exception):
    """The base class of dupwatch's errors. The message says what happened and what to do.

    >>> import dupwatch
    >>> try:
    ...     dupwatch.open("no-such-store:")
    ... except dupwatch.Error as error:
    ...     type(error).__name__
    'ConfigError'
    """


class ConfigError(Error):
    """A setting or an argument is wrong.

    >>> import dupwatch
    >>> try:
    ...     dupwatch.open("memory:", settings={"judge": {"similarity_min": 2}})
    ... except dupwatch.ConfigError as error:
    ...     "similarity_min" in str(error)
    True
    """


class InvalidArticle(Error):  # noqa: N818  # named for the article, which is at fault
    """An article is invalid, so the call stored nothing.

    ``id`` is the article's id as it was passed, or "" if there is none. ``index`` is the article's position in the
    call's list, or None for a single article. ``reason`` is ``unknown_field`` or a reason of dead letters. ``detail``
    is a sentence for people.

    >>> import dupwatch
    >>> with dupwatch.open("memory:") as window:
    ...     try:
    ...         window.judge([{"id": "w1"}])
    ...     except dupwatch.InvalidArticle as error:
    ...         error.id, error.index, str(error.reason)
    ('w1', 0, 'missing_body')
    """

    def __init__(self, article_id: str, reason: str, detail: str, index: int | None = None) -> None:
        named = "" if article_id == "" else f" {_shown(article_id)}"
        place = "" if index is None else f" at index {index}"
        super().__init__(f"article{named}{place}: {reason}: {detail}")
        self.id = article_id
        self.reason = reason
        self.detail = detail
        self.index = index


def _shown(article_id: object) -> str:
    """Return the id for a message. The caller may have passed a value of any type."""
    try:
        return cut(repr(article_id), _ID_CHARS_MAX)
    except ValueError:
        return "whose id is an integer with too many digits"


class StoreError(Error):
    """The store is damaged, full or out of reach, or was made with other settings.

    Articles that the call had judged by then stay stored, so calling again returns the same verdicts.

    >>> import dupwatch
    >>> try:
    ...     dupwatch.open("lmdb:/dev/null/articles.store")
    ... except dupwatch.StoreError:
    ...     "check the path"
    'check the path'
    """


@contextmanager
def public_errors() -> Iterator[None]:
    """Replace internal errors with public ones, except ``BadRecord``."""
    try:
        yield
    except WrongConfig as error:
        raise ConfigError(str(error)) from error
    except (StoreFailed, StoreMismatch, StoreBroken) as error:
        raise StoreError(str(error)) from error
    except BadRecord:
        # The caller adds the article's id and index.
        raise
    except DupwatchError as error:
        raise Error(str(error)) from error
