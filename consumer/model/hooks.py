"""Hooks: the parts of a run report what happens, and metrics, health, spans, logs and pages listen.

A part reports an *occurrence*: a small immutable value whose class is defined next to the code that reports it. A
listener registers a function for each class of occurrences. Reporters and listeners do not know each other, and an
occurrence without listeners costs one look-up.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

_Occurrence = TypeVar("_Occurrence")

RunPart = Literal["source", "sink", "store", "database", "banks"]
"""A part of a run that may be unreachable. The database is that of the console."""


class Listener(Protocol):
    """An object that listens to occurrences of a run."""

    def listen(self, hooks: "Hooks") -> None:
        """Register functions with ``hooks.on``. Called once, before the first occurrence that concerns the listener."""
        ...


class Hooks:
    """The registered functions by class of occurrence, called in the order of registration.

    Any thread may call ``report``. The functions run in that thread before ``report`` returns, so they must be fast,
    and thread-safe if several threads report the same class. Their exceptions propagate to the reporter. Functions may
    be added while other threads report.
    """

    def __init__(self, *listeners: Listener) -> None:
        self._calls: dict[type, tuple[Callable[[Any], None], ...]] = {}
        for listener in listeners:
            listener.listen(self)

    def on(self, kind: type[_Occurrence], call: Callable[[_Occurrence], None]) -> None:
        """Call this function for each occurrence of this class, but not of its subclasses."""
        # A new tuple: a thread that is reporting iterates over the old one.
        self._calls[kind] = (*self._calls.get(kind, ()), call)

    def wants(self, kind: type) -> bool:
        """Return whether this class has a listener. Check it before computing a costly occurrence."""
        return kind in self._calls

    def report(self, occurrence: object) -> None:
        """Call the functions that are registered for the class of this occurrence."""
        for call in self._calls.get(type(occurrence), ()):
            call(occurrence)


class Outage(NamedTuple):
    """A part is unreachable, with a ``reason``, or reachable again, if ``reason`` is None.

    A part may have several reporters: the brokers and the schema registry, for example, both report on the source. The
    part is unreachable while at least one of them says so. A reporter may repeat a report.
    """

    part: RunPart
    reporter: str
    reason: str | None
