"""Kafka topics as a kind of feed."""

from types import ModuleType
from typing import Final

from consumer.pipeline.feed_kind import FeedKind, SinkAdapter, SourceAdapter

_REFUSED_SINKS: Final = frozenset({"file", "nowhere"})
"""A file is cut back to a checkpoint, which a run over topics does not have; "nowhere" is for ``dupwatch serve``."""


def _topics() -> ModuleType:
    """Import the module that opens topics, and with it the client, which would cost runs over files 0.1 s."""
    from consumer.kafka import opening  # noqa: PLC0415  # as above

    return opening


def _sink_refusal(sink: str) -> str | None:
    if sink not in _REFUSED_SINKS:
        return None
    return "a run over topics writes to topics or to standard output: set sink.url to kafka://HOST:PORT/PREFIX or -"


KAFKA: Final = FeedKind(
    name="kafka",
    form="kafka://HOST:PORT/TOPIC",
    form_of_outputs="kafka://HOST:PORT/PREFIX",
    pattern="kafka://.*",
    source=SourceAdapter(
        open=lambda url, opening: _topics().open_source(url, opening),
        refuses=_sink_refusal,
        check=lambda url, opening, *, create: _topics().check_source(url, opening, create=create),
        check_remote=lambda url, opening: _topics().check_not_filling(url, opening),
        is_lasting=True,
        is_keyed=True,
        is_shared=True,
        has_ranges=True,
        joins_transactions=True,
    ),
    sink=SinkAdapter(
        open=lambda url, opening: _topics().open_sink(url, opening),
        letters=lambda url, opening: _topics().open_letters(url, opening),
        check=lambda url, opening, *, create: _topics().check_sink(url, opening, create=create),
        check_remote=lambda url, opening: _topics().check_topics(url, opening),
        is_followed=True,
        has_transactions=True,
    ),
    banks=lambda url, opening: _topics().open_banks(url, opening),
)
