"""Kinds of feeds: files, standard streams, and ``nowhere:``, which discards verdicts and dead letters."""

from pathlib import Path
from typing import Final

from consumer.files.bank_file import BankFile
from consumer.files.opening import (
    no_letters,
    open_file,
    open_letters,
    open_nowhere,
    open_source,
    open_stream,
)
from consumer.files.source import STREAM as STREAM_URL
from consumer.pipeline.feed_kind import FeedKind, SinkAdapter, SourceAdapter

NOWHERE_URL: Final = "nowhere:"
"""The sink of a service that only answers its clients: verdicts and dead letters are discarded."""
_REFUSALS: Final = {
    "kafka": "a kafka:// sink needs a kafka:// source; name a file for the verdicts, or -",
    "nowhere": f"{NOWHERE_URL} is a sink of dupwatch serve; name a file, which is created, or -",
}
"""Why a run over a file or a stream cannot write to a sink, by the kind of the sink."""

FILE: Final = FeedKind(
    name="file",
    form="a file",
    pattern=rf"(?!(?:{STREAM_URL}|{NOWHERE_URL})\Z)(?:(?!://).)+",
    source=SourceAdapter(open=open_source, refuses=_REFUSALS.get),
    sink=SinkAdapter(open=open_file, letters=open_letters),
    banks=lambda url, opening: BankFile(Path(url), opening.writing),
)
STREAM: Final = FeedKind(
    name="stream",
    form=STREAM_URL,
    pattern=STREAM_URL,
    source=SourceAdapter(open=open_source, refuses=_REFUSALS.get),
    sink=SinkAdapter(open=open_stream, letters=no_letters),
)
NOWHERE: Final = FeedKind(
    name="nowhere", form="", pattern=NOWHERE_URL, sink=SinkAdapter(open=open_nowhere, letters=no_letters)
)
