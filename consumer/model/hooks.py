"""How parts of a run report what happens, and how metrics, health, spans, logs and pages hear of it.

A part that causes something reports an *occurrence*: a small immutable value whose class stands beside the code that
causes it. A listener registers a function for each class of occurrences that it wants. Neither knows the other, and
an occurrence that nobody registered for costs one look-up.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

_Occurrence = TypeVar("_Occurrence")

RunPart = Literal["source", "sink", "store", "database", "banks"]
"""The database is the console's."""


class Listener(Protocol):
    """Something that wants to know what happens in a run."""

    def listen(self, hooks: "Hooks") -> None:
        """Register functions with ``hooks.on``; called once, before the occurrences that it wants."""
        ...


class Hooks:
    """Calls every function that is registered for an occurrence's class, in the order of registration.

    ``report`` may be called from any thread: functions run in the thread that reports and before ``report`` returns,
    so they have to be fast, and locked where several threads report the same class. What they raise is raised to
    the part that reports. Functions may be added while other threads report.
    """

    def __init__(self, *listeners: Listener) -> None:
        self._calls: dict[type, tuple[Callable[[Any], None], ...]] = {}
        for listener in listeners:
            listener.listen(self)

    def on(self, kind: type[_Occurrence], call: Callable[[_Occurrence], None]) -> None:
        """Call this function for each occurrence of this class, but not of its subclasses."""
        # A new tuple, so that a thread that reports meanwhile goes through the old one.
        self._calls[kind] = (*self._calls.get(kind, ()), call)

    def wants(self, kind: type) -> bool:
        """Return whether anybody listens to this class: ask before computing an occurrence that is costly to make."""
        return kind in self._calls

    def report(self, occurrence: object) -> None:
        """Call the functions that listen to this occurrence."""
        for call in self._calls.get(type(occurrence), ()):
            call(occurrence)


class Outage(NamedTuple):
    """A part is out of reach, and ``why``; or within reach again, ``why`` being None.

    A part may have several reporters: the source has the brokers and the schema registry. It is out of reach while at
    least one of them says so. A reporter may report the same several times.
    """

    part: RunPart
    reporter: str
    why: str | None
