"""The registry of sources and sinks. To add a kind, describe it as a ``FeedKind`` and list it here."""

from collections.abc import Sequence
from typing import Final

from consumer.banks.bank_log import BankLog
from consumer.files.kind import FILE, NOWHERE, STREAM
from consumer.kafka.kind import KAFKA
from consumer.pipeline.feed_kind import FeedKind, SinkAdapter, SinkArguments, SourceAdapter

KINDS: Final[tuple[FeedKind, ...]] = (FILE, STREAM, KAFKA, NOWHERE)


def source_of(url: str) -> SourceAdapter:
    """Return the adapter of a source. Raises ``ValueError`` with the valid forms if no kind of source has this URL."""
    return _source_kind(url)[1]


def source_kind(url: str) -> FeedKind:
    """Return the kind of a source. Raises ``ValueError`` as ``source_of`` does."""
    return _source_kind(url)[0]


def sink_of(url: str) -> SinkAdapter:
    """Return the adapter of a sink. Raises ``ValueError`` with the valid forms if no kind of sink has this URL."""
    return _sink_kind(url)[1]


def banks_at(url: str, opening: SinkArguments) -> BankLog:
    """Return the banks at a URL, without contacting a server. Raises ``ConfigError`` if its kind refuses the URL.

    Raises ``ValueError`` with the valid forms if no kind of feed with banks has this URL.
    """
    kind = _kind_of(url)
    if kind is None or kind.banks is None:
        raise ValueError(_advice([kind.written_form for kind in KINDS if kind.banks is not None]))
    return kind.banks(url, opening)


def pair_fault(source_url: str, sink_url: str, *, exactly_once: bool) -> str | None:
    """Return why a run cannot read this source and write to this sink; None if it can.

    Exactly-once delivery needs a source whose positions fit into a transaction, and a sink with transactions. A run
    over a source that ends ignores ``exactly_once``, because it has a checkpoint instead. Raises ``ValueError`` as
    ``source_of`` and ``sink_of`` do.
    """
    source, (kind, sink) = source_of(source_url), _sink_kind(sink_url)
    refusal = source.refuses(kind.name)
    if refusal is not None or not (exactly_once and source.is_lasting):
        return refusal
    if not sink.has_transactions:
        return 'delivery = "exactly-once" needs a kafka:// sink: its transactions hold the offsets'
    if not source.joins_transactions:
        return 'delivery = "exactly-once" needs a kafka:// source: only offsets fit into a transaction of the sink'
    return None


def _source_kind(url: str) -> tuple[FeedKind, SourceAdapter]:
    kind = _kind_of(url)
    if kind is None or kind.source is None:
        raise ValueError(_advice([kind.form for kind in KINDS if kind.source is not None]))
    return kind, kind.source


def _sink_kind(url: str) -> tuple[FeedKind, SinkAdapter]:
    kind = _kind_of(url)
    if kind is None or kind.sink is None:
        raise ValueError(_advice([kind.written_form for kind in KINDS if kind.sink is not None]))
    return kind, kind.sink


def _kind_of(url: str) -> FeedKind | None:
    return next((kind for kind in KINDS if kind.matches(url)), None)


def _advice(forms: Sequence[str]) -> str:
    *others, last = filter(None, forms)
    return f"write it as {', '.join(others)} or {last}"
