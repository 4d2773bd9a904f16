"""What dupwatch knows of a kind of feed: how its URLs are written, and how it is read and written.

Each kind describes itself beside its implementation; ``feeds.kinds`` lists them. Nothing else parses their URLs.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Generic, NamedTuple, TypeVar

from consumer.banks.bank_log import BankLog
from consumer.model.hooks import Hooks
from consumer.model.letter import LetterReader
from consumer.model.limits import ReadLimits
from consumer.model.ports import DeadLetterSink, Emit, ReleasingSink, Source
from consumer.pipeline.arrivals import Arrivals
from consumer.pipeline.dead_letter_policy import Gate
from consumer.pipeline.journal import Journal
from storage.files import FileWriting
from storage.kind import DiskLocation

_Options = TypeVar("_Options")
_Source_co = TypeVar("_Source_co", bound=Source, covariant=True)


class Streams(NamedTuple):
    """What ``-`` stands for as a sink: verdicts go to ``out``, dead letters to ``err``."""

    out: BinaryIO
    err: BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedArguments:
    """How a source or a sink of any kind is opened; a kind uses what applies to it.

    ``own`` has the options that only one kind understands.
    """

    hooks: Hooks = field(default_factory=Hooks)
    own: tuple[object, ...] = ()

    def own_options(self, options: type[_Options]) -> _Options:
        """Return the options of this type, or its defaults."""
        found = self.found_options(options)
        return options() if found is None else found

    def found_options(self, options: type[_Options]) -> _Options | None:
        """Return the options of this type, None where there are none."""
        return next((found for found in self.own if isinstance(found, options)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceArguments(FeedArguments):
    """How a source is opened. It delivers no more batches once ``stopped`` returns true."""

    limits: ReadLimits = field(default_factory=ReadLimits)
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkArguments(FeedArguments):
    """How a sink is opened.

    ``feed`` is what events call the input, ``what`` is what messages call the output. ``emit`` selects the verdicts of
    files and streams. ``store`` is where the store is on this machine: no sink may overwrite it. ``proceed`` is called
    several times a second while the sink waits for others, and what it raises ends the wait. A ``transactional`` sink
    commits the positions of the source together with what it wrote.
    """

    feed: str = ""
    what: str = "verdicts"
    emit: Emit = "all"
    writing: FileWriting = field(default_factory=lambda: FileWriting(durable=True))
    streams: Streams | None = None
    store: DiskLocation | None = None
    proceed: Callable[[], None] = lambda: None
    transactional: bool = False


class Outputs(NamedTuple):
    """The open outputs of a run. The journal that keeps the positions of the source is built for them."""

    verdicts: ReleasingSink
    dead_letters: DeadLetterSink
    transactions: object | None = None


class OpenedSource(NamedTuple, Generic[_Source_co]):
    """A source, when its records arrive, and which bad records it admits.

    ``journal`` builds what keeps its positions. ``check`` raises ``Abandoned`` where the begun batch no longer belongs
    to this run.
    """

    source: _Source_co
    name: str
    arrivals: Arrivals
    gate: Gate
    journal: Callable[[Outputs], Journal]
    check: Callable[[], None] = lambda: None


class OpenedSink(NamedTuple):
    """A sink, and what opens the sink of its dead letters. ``transactions`` are for the journal of the source."""

    sink: ReleasingSink
    dead_letters: Callable[[], DeadLetterSink]
    transactions: object | None = None


def _no_check(_url: str, _opening: FeedArguments, *, create: bool) -> None:
    """Accept any settings."""
    del create


def _nothing_there(_url: str, _opening: FeedArguments) -> None:
    """Ask nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAdapter:
    """How a kind of feed is read.

    A run over a ``lasting`` source continues until it is stopped, and waits for what is out of reach; any other ends
    with its input, and resumes by a checkpoint. ``is_keyed``: records have keys and values as ``[kafka]`` describes
    them. ``is_shared``: consumers divide it among themselves as a group, whose positions commands read and set. The
    commands know groups of Kafka alone.
    ``has_ranges``: a range of it can be read again. ``joins_transactions``: a transaction of the sink can hold its
    positions. ``refuses`` returns why a run over it cannot write to a sink of this name, None where it can.

    ``check`` raises ``ConfigError`` for wrong settings, and asks nobody; with ``create`` it creates the clients. Once a
    run begins, ``check_there`` asks whether the source may be read.
    """

    open: Callable[[str, SourceArguments], OpenedSource[Source]]
    refuses: Callable[[str], str | None] = lambda _: None
    check: Callable[..., None] = _no_check
    check_there: Callable[[str, SourceArguments], None] = _nothing_there
    lasting: bool = False
    is_keyed: bool = False
    is_shared: bool = False
    has_ranges: bool = False
    joins_transactions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkAdapter:
    """How a kind of feed is written.

    ``letters`` opens the dead letters that are in it; it raises ``ConfigError`` where they cannot be read back.
    ``is_followed``: readers are told there about releases and near misses, and may have a clean feed. Releases find
    these readers in topics alone.
    ``has_transactions``: it can commit the positions of a source with what it wrote. ``check`` and ``check_there`` work
    as in ``SourceAdapter``.
    """

    open: Callable[[str, SinkArguments], OpenedSink]
    letters: Callable[[str, SinkArguments], AbstractContextManager[LetterReader]]
    check: Callable[..., None] = _no_check
    check_there: Callable[[str, SinkArguments], None] = _nothing_there
    is_followed: bool = False
    has_transactions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedKind:
    """One kind of feed, which is read, or written, or both.

    ``form`` is how messages write its URLs; empty where only one command takes them. ``form_of_outputs`` is how they
    write those of sinks and banks, where that differs. ``pattern`` is the regular
    expression of a whole URL; whether the rest of it is valid is for ``check`` to say. ``banks`` opens the banks that
    such a URL names, without asking anybody; None for a kind that holds none. It raises ``ConfigError``.
    """

    name: str
    form: str
    pattern: str
    source: SourceAdapter | None = None
    sink: SinkAdapter | None = None
    banks: Callable[[str, SinkArguments], BankLog] | None = None
    form_of_outputs: str = ""

    @property
    def written_form(self) -> str:
        """How messages write URLs of its sinks and banks."""
        return self.form_of_outputs or self.form

    def names(self, url: str) -> bool:
        """Return whether this is a URL of this kind."""
        return re.fullmatch(self.pattern, url, re.DOTALL) is not None
