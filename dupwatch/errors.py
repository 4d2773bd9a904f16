"""The errors that a caller can meet."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from consumer.model.errors import BadRecord, DupwatchError, StoreBroken, StoreMismatch
from consumer.model.errors import ConfigError as WrongConfig
from consumer.text.visible import cut
from storage.errors import StoreError as StoreFailed

_ID_CHARS_MAX: Final = 256


class Error(Exception):
    """The base class. The message says what happened and what to do, in a sentence or two."""


class ConfigError(Error):
    """A setting, or what a call was given, is wrong."""


class InvalidArticle(Error):  # noqa: N818  # named for the article, which is at fault
    """An article cannot be judged; nothing of the call was stored.

    ``id`` is the article's, "" if it has none; ``index`` is its place among several, None where a call has one article.
    ``reason`` is ``unknown_field``, or one of those of dead letters; ``detail`` is for a person.
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
    """Return the id for a message; a caller may have given anything as one."""
    try:
        return cut(repr(article_id), _ID_CHARS_MAX)
    except ValueError:
        return "with an integer of too many digits as its id"


class StoreError(Error):
    """The store cannot be used, cannot be reached, or was made with other settings.

    What a call had judged by then is stored: calling again gives the same verdicts.
    """


@contextmanager
def translated() -> Iterator[None]:
    """Raise what callers know in place of what happens inside."""
    try:
        yield
    except WrongConfig as error:
        raise ConfigError(str(error)) from error
    except (StoreFailed, StoreMismatch, StoreBroken) as error:
        raise StoreError(str(error)) from error
    except BadRecord:
        # The caller knows which article it is of.
        raise
    except DupwatchError as error:
        raise Error(str(error)) from error
