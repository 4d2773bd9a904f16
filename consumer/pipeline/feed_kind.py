"""The description of a kind of feed: the form of its URLs, and the adapters that read and write it.

Each kind is described next to its implementation, and listed in ``feeds.kinds``. Nothing else parses its URLs.
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
from storage.files import WriteOptions
from storage.kind import DiskLocation

_Options = TypeVar("_Options")
_Source_co = TypeVar("_Source_co", bound=Source, covariant=True)


class Streams(NamedTuple):
    """The streams of the sink ``-``: verdicts go to ``out``, dead letters to ``err``."""

    out: BinaryIO
    err: BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedArguments:
    """The arguments for opening a source or a sink. Each kind uses those that apply to it.

    ``own`` has options that only one kind understands.
    """

    hooks: Hooks = field(default_factory=Hooks)
    own: tuple[object, ...] = ()

    def own_options(self, options: type[_Options]) -> _Options:
        """Return the options of this type, or its defaults."""
        given = self.options_or_none(options)
        return options() if given is None else given

    def options_or_none(self, options: type[_Options]) -> _Options | None:
        """Return the options of this type, or None."""
        return next((given for given in self.own if isinstance(given, options)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceArguments(FeedArguments):
    """The arguments for opening a source, which delivers no more batches once ``stopped`` returns true."""

    limits: ReadLimits = field(default_factory=ReadLimits)
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkArguments(FeedArguments):
    """The arguments for opening a sink.

    ``feed`` is the name of the input in events, ``output_name`` the name of the output in messages. ``emit`` selects
    the verdicts that go to files and streams. ``store`` is the location of a store on this machine, which no sink may
    overwrite. ``proceed`` is called several times a second while the sink waits for servers; an exception from it ends
    the wait. A ``transactional`` sink commits the positions of the source together with its own output.
    """

    feed: str = ""
    output_name: str = "verdicts"
    emit: Emit = "all"
    writing: WriteOptions = field(default_factory=lambda: WriteOptions(durable=True))
    streams: Streams | None = None
    store: DiskLocation | None = None
    proceed: Callable[[], None] = lambda: None
    transactional: bool = False


class Outputs(NamedTuple):
    """The open outputs of a run, for which the source builds its journal."""

    verdicts: ReleasingSink
    dead_letters: DeadLetterSink
    transactions: object | None = None


class OpenedSource(NamedTuple, Generic[_Source_co]):
    """An open source with its name in messages, the arrivals of its records, and its gate for bad records.

    ``journal`` builds the journal of its positions. ``check`` raises ``Abandoned`` if the current batch no longer
    belongs to this run.
    """

    source: _Source_co
    name: str
    arrivals: Arrivals
    gate: Gate
    journal: Callable[[Outputs], Journal]
    check: Callable[[], None] = lambda: None


class OpenedSink(NamedTuple):
    """An open sink, and the function that opens its dead letters. ``transactions`` is for the journal of the source."""

    sink: ReleasingSink
    dead_letters: Callable[[], DeadLetterSink]
    transactions: object | None = None


def _no_check(_url: str, _opening: FeedArguments, *, create: bool) -> None:
    """Accept any settings."""
    del create


def _no_remote_check(_url: str, _opening: FeedArguments) -> None:
    """Contact no server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAdapter:
    """The functions and properties of a kind of source.

    - ``is_lasting``: a run over it continues until it is stopped, and waits for unreachable servers. Any other run
      ends with its input, and resumes from a checkpoint.
    - ``is_keyed``: records have keys and values, which the settings in ``[kafka]`` describe.
    - ``is_shared``: consumers divide it among themselves as a group. Commands that read or set the positions of a
      group support only Kafka's groups.
    - ``has_ranges``: a range of it can be read again.
    - ``joins_transactions``: a transaction of the sink can hold its positions.
    - ``refuses`` takes the name of a kind of sink, and returns why a run cannot write to it; None if it can.
    - ``check`` raises ``ConfigError`` for wrong settings, without contacting a server; with ``create``, also for
      settings that the client refuses.
    - ``check_remote`` is called when a run begins. It asks the servers, and raises ``ConfigError`` if the source must
      not be read now.
    """

    open: Callable[[str, SourceArguments], OpenedSource[Source]]
    refuses: Callable[[str], str | None] = lambda _: None
    check: Callable[..., None] = _no_check
    check_remote: Callable[[str, SourceArguments], None] = _no_remote_check
    is_lasting: bool = False
    is_keyed: bool = False
    is_shared: bool = False
    has_ranges: bool = False
    joins_transactions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkAdapter:
    """The functions and properties of a kind of sink.

    - ``letters`` opens the dead letters in it. Raises ``ConfigError`` if they cannot be read back.
    - ``is_followed``: its readers also get releases, near misses and, if wanted, a clean feed. Releases reach readers
      only in topics.
    - ``has_transactions``: it can commit the positions of a source together with its own output.
    - ``check`` works as in ``SourceAdapter``. ``check_remote`` raises ``ConfigError`` if the sink is incomplete.
    """

    open: Callable[[str, SinkArguments], OpenedSink]
    letters: Callable[[str, SinkArguments], AbstractContextManager[LetterReader]]
    check: Callable[..., None] = _no_check
    check_remote: Callable[[str, SinkArguments], None] = _no_remote_check
    is_followed: bool = False
    has_transactions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedKind:
    """One kind of feed, which is read, or written, or both.

    ``form`` is the form of its URLs in messages; empty if only one command takes them. ``form_of_outputs`` is the
    form for sinks and banks, if it differs. ``pattern`` is a regular expression for a whole URL, whose details
    ``check`` examines. ``banks`` opens the banks at a URL, without contacting a server, or raises ``ConfigError``; it
    is None for a kind without banks.
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
        """The form of URLs of its sinks and banks in messages."""
        return self.form_of_outputs or self.form

    def matches(self, url: str) -> bool:
        """Return whether this is a URL of this kind."""
        return re.fullmatch(self.pattern, url, re.DOTALL) is not None
