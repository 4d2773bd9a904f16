"""Limits the size and duration of a schema registry's answers. The client alone would read any answer to the end.

The client uses httpx (or its successor httpx2), and only ``limit_answers`` imports it. The stream of its response is
replaced by one that counts bytes. The client's own time limits apply to single reads, so a server that sends a byte now
and then, or one interim answer after another, never exceeds them. A timer ends such connections.
"""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from threading import Lock, Timer
from typing import Any, Final, NamedTuple

from consumer.model.errors import ConfigError

_OK: Final = 200
_PLAIN: Final = frozenset({"", "identity"})
_DEADLINE: Final = "dupwatch.deadline"
"""The name of a request's deadline among its extensions. The library ignores unknown extensions."""


class SchemaTooLong(Exception):  # noqa: N818  # named for the schema, which is at fault
    """A schema, together with all schemas that it refers to, exceeds the limit. The message names the limit."""


class AnswerLimits(NamedTuple):
    """The maximum size of all answers to one client together, and the time limit of each.

    The time begins with the connection and ends with the last byte.
    """

    bytes_max: int
    answer_s: float


def limit_answers(session: Any, limits: AnswerLimits) -> None:  # noqa: ANN401  # httpx's or httpx2's
    """Limit the answers in a session. Raises ``ConfigError`` if the installed client does not allow that."""
    try:
        hooks: Mapping[str, list[Any]] = session.event_hooks
        on_request, on_response = hooks["request"], hooks["response"]
        library: Any = import_module(type(session).__module__.partition(".")[0])
        counting = _AnswerCounter(limits, library.SyncByteStream, library.ReadError)
    except (AttributeError, KeyError) as error:
        raise ConfigError(
            "registry: the size of answers cannot be limited with the installed version of confluent-kafka; install "
            "the version that dupwatch was released with"
        ) from error
    # The size of a compressed answer would be unknown until it is decompressed.
    session.headers["Accept-Encoding"] = "identity"
    # Each request has a connection of its own, which its deadline may end.
    session.headers["Connection"] = "close"
    session.event_hooks = {
        **hooks,
        "request": [*on_request, counting.begin],
        "response": [*on_response, counting.check],
    }


class _Deadline:
    """A timer that ends the connection of a request. Afterwards ``check`` raises a read error."""

    def __init__(self, limit_s: float, read_error: Callable[[str], Exception]) -> None:
        self._limit_s = limit_s
        self._read_error = read_error
        self._lock = Lock()
        self._timer = Timer(limit_s, self._end)
        self._timer.daemon = True
        self._connection: socket.socket | None = None
        self._over = False

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Follow the steps of the request, as the library reports them."""
        if event == "connection.connect_tcp.complete":
            # A copy, since TLS takes over the original.
            self._connection = info["return_value"].get_extra_info("socket").dup()
            self._timer.start()
        elif event.endswith(".failed"):
            self.check()

    def check(self) -> None:
        """Raise a read error if the time is over."""
        if self._over:
            raise self._read_error(f"the answer took longer than {self._limit_s:g} s (registry.request_s)")

    def close(self) -> None:
        """Stop the timer and close our copy of the connection."""
        self._timer.cancel()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _end(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._over = True
                with suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)
        self.close()


class _AnswerCounter:
    """The hooks for each request, and for each answer before its body is read.

    The hook for answers may raise a read error, and reading the body may also raise ``SchemaTooLong``. After a read
    error the client tries the next address, if there is one.
    """

    def __init__(self, limits: AnswerLimits, stream_type: type, read_error: Callable[[str], Exception]) -> None:
        self._limits = limits
        self._read_error = read_error
        self._left = limits.bytes_max
        self._stream: type = type(
            "_Counted", (stream_type,), {"__init__": _set_up, "__iter__": _iterate, "close": _close}
        )

    def begin(self, request: Any) -> None:  # noqa: ANN401  # as above
        """Give a request its deadline."""
        deadline = _Deadline(self._limits.answer_s, self._read_error)
        request.extensions |= {_DEADLINE: deadline, "trace": deadline.trace}

    def check(self, response: Any) -> None:  # noqa: ANN401  # as above
        """Raise a read error for a redirect or a compressed answer.

        Count the bytes of other answers as they are read.
        """
        if response.is_redirect:
            raise self._read_error(
                f"it redirects ({response.status_code}), which is not followed; name the registry's own address in "
                "registry.url"
            )
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in _PLAIN:
            raise self._read_error(f"the answer is compressed ({encoding}), although that was not requested")
        deadline: _Deadline = response.request.extensions[_DEADLINE]
        response.stream = self._stream(response.stream, self._counted(response, response.stream), deadline)

    def _counted(self, response: Any, chunks: Any) -> Iterator[bytes]:  # noqa: ANN401  # as above
        deadline: _Deadline = response.request.extensions[_DEADLINE]
        left = self._left
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise self._too_long(response)
            yield chunk
        # Without a length, an answer also ends with the connection.
        deadline.check()
        # A failed answer does not count, because another address is tried.
        self._left = left

    def _too_long(self, response: Any) -> Exception:  # noqa: ANN401  # as above
        sentence = f"more than {self._limits.bytes_max:,} bytes (registry.schema_bytes_max)"
        if response.status_code == _OK and "json" in response.headers.get("content-type", ""):
            return SchemaTooLong(f"it has {sentence}, with everything that it refers to")
        # This is probably a proxy's page. Later the registry itself may answer.
        return self._read_error(f"the answer has {sentence}")


def _set_up(self: Any, stream: Any, counted: Iterator[bytes], deadline: _Deadline) -> None:  # noqa: ANN401  # of a class built at run time
    self.stream, self.counted, self.deadline = stream, counted, deadline


def _iterate(self: Any) -> Iterator[bytes]:  # noqa: ANN401  # as above
    counted: Iterator[bytes] = self.counted
    return counted


def _close(self: Any) -> None:  # noqa: ANN401  # as above
    self.deadline.close()
    self.stream.close()
