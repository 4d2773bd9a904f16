"""Limits the size and duration of a schema registry's answers: its client would read any answer to the end.

The client uses httpx (or its successor httpx2), which is not imported here. The stream of its response is replaced by
one that counts.
"""

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, NamedTuple

from consumer.model.errors import ConfigError

_OK: Final = 200
_PLAIN: Final = frozenset({"", "identity"})


class SchemaTooLong(Exception):  # noqa: N818  # what the schema is
    """A schema with everything that it refers to exceeds the limit; the message names it."""


class AnswerLimits(NamedTuple):
    """The number of bytes that all answers to one client may have together, and the time that each may take."""

    bytes_max: int
    answer_s: float


def bound(session: Any, limits: AnswerLimits) -> None:  # noqa: ANN401  # httpx's or httpx2's
    """Limit what the session reads. Raises ``ConfigError`` if the installed client does not allow that."""
    try:
        hooks: list[Any] = session.event_hooks["response"]
        library: Any = import_module(type(session).__module__.partition(".")[0])
        counting = _Counting(limits, library.SyncByteStream, library.ReadError)
    except (AttributeError, KeyError) as error:
        raise ConfigError(
            "registry: the size of answers cannot be limited with the installed version of confluent-kafka; install "
            "the version that dupwatch was released with"
        ) from error
    # The size of a compressed answer would be unknown until it is decompressed.
    session.headers["Accept-Encoding"] = "identity"
    session.event_hooks = {**session.event_hooks, "response": [*hooks, counting]}


class _Counting:
    """A hook, called with each answer before its body is read. Raises ``SchemaTooLong``, or an error of reading.

    After an error of reading the client tries the next address, if there is one.
    """

    def __init__(self, limits: AnswerLimits, stream_type: type, unread: Callable[[str], Exception]) -> None:
        self._limits = limits
        self._unread = unread
        self._left = limits.bytes_max
        self._stream: type = type("_Counted", (stream_type,), {"__init__": _set, "__iter__": _run, "close": _close})

    def __call__(self, response: Any) -> None:  # noqa: ANN401  # as above
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in _PLAIN:
            raise self._unread(f"the answer is compressed ({encoding}), although that was not requested")
        response.stream = self._stream(response.stream, self._counted(response, response.stream))

    def _counted(self, response: Any, chunks: Any) -> Iterator[bytes]:  # noqa: ANN401  # as above
        until_s = time.monotonic() + self._limits.answer_s
        left = self._left
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise self._too_long(response)
            if time.monotonic() > until_s:
                raise self._unread(f"the answer took longer than {self._limits.answer_s:g} s (registry.request_s)")
            yield chunk
        # An answer that failed does not count: another address is asked for it.
        self._left = left

    def _too_long(self, response: Any) -> Exception:  # noqa: ANN401  # as above
        sentence = f"more than {self._limits.bytes_max:,} bytes (registry.schema_bytes_max)"
        if response.status_code == _OK and "json" in response.headers.get("content-type", ""):
            return SchemaTooLong(f"it has {sentence}, with everything that it refers to")
        # Probably a proxy's page; later the registry itself may answer.
        return self._unread(f"the answer has {sentence}")


def _set(self: Any, stream: Any, counted: Iterator[bytes]) -> None:  # noqa: ANN401  # of a class made when it is known
    self.stream, self.counted = stream, counted


def _run(self: Any) -> Iterator[bytes]:  # noqa: ANN401  # as above
    counted: Iterator[bytes] = self.counted
    return counted


def _close(self: Any) -> None:  # noqa: ANN401  # as above
    self.stream.close()
