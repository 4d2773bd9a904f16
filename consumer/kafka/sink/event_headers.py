"""The headers of verdict events on a topic, which readers can use without decoding the value.

The trace headers are those of W3C Trace Context and W3C Baggage. The CloudEvents attributes are those of CloudEvents
1.0 in binary mode, as its Kafka protocol binding (section 3.2) writes them: an attribute is a header with the prefix
``ce_``, and ``content-type`` describes the value.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from consumer.model.ports import JudgedRecord
from consumer.model.record import Header, Headers, RawRecord
from consumer.model.verdict import Verdict

SCHEMA: Final = "dupwatch-schema"
SCHEME: Final = "dupwatch-scheme"
OUTCOME: Final = "dupwatch-outcome"
ORIGIN_TOPIC: Final = "dupwatch-origin-topic"
ORIGIN_PARTITION: Final = "dupwatch-origin-partition"
ORIGIN_OFFSET: Final = "dupwatch-origin-offset"
CUT_OF_BYTES: Final = "dupwatch-cut-of-bytes"
TRACE: Final = frozenset({"traceparent", "tracestate", "baggage"})

_EVENT_TYPE: Final = "io.dupwatch.verdict."
_EVENT_ID_BYTES: Final = 16
# Characters that a CloudEvents String must not contain (section 3.1 of its core specification).
_FORBIDDEN_CHARS: Final = re.compile("[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


def event_headers(answer: JudgedRecord, source: str | None = None) -> Headers:
    """Return the headers of a verdict: its schema, scheme and outcome, and the position and trace of its record.

    A retraction has no scheme. A record from a file has no position and no trace. With ``source``, a URI reference to
    the feed, the attributes of a CloudEvent come first.
    """
    verdict = answer.event.verdict
    attributes = [] if source is None else cloud_event_attributes(verdict, source)
    return [
        *attributes,
        *_schema_headers(answer, verdict.schema),
        _text(OUTCOME, verdict.outcome),
        *_record_headers(answer),
    ]


def side_headers(answer: JudgedRecord, schema: str, source: str | None = None, about: str = "") -> Headers:
    """Return the headers of another event about a verdict, which are like those of the verdict, but without an outcome.

    ``schema`` is the schema of this event, such as ``dupwatch.near-miss/1``. If a verdict can have several such events,
    ``about`` distinguishes them.
    """
    verdict, name = answer.event.verdict, schema.removeprefix("dupwatch.").partition("/")[0]
    event = _id_of(f"{name} {about}" if about else name, verdict)
    attributes = [] if source is None else _attributes(verdict, source, f"io.dupwatch.{name}", event)
    return [*attributes, *_schema_headers(answer, schema), *_record_headers(answer)]


def origin_headers(record: RawRecord) -> Headers:
    """Return the position of a record as headers: topic, partition and offset; none if it has no partition."""
    if record.partition is None:
        return []
    topic, number = record.partition
    return [
        _text(ORIGIN_TOPIC, topic),
        _text(ORIGIN_PARTITION, str(number)),
        _text(ORIGIN_OFFSET, str(record.start)),
    ]


def trace_headers(headers: Sequence[Header]) -> Headers:
    """Return the headers that continue a trace, unchanged and in order, including repeated names."""
    return [header for header in headers if header[0] in TRACE]


def cloud_event_attributes(verdict: Verdict, source: str) -> Headers:
    """Return the CloudEvents attributes of a verdict as headers.

    The subject is the article's id, unless the id has characters that an attribute must not contain.
    """
    return _attributes(verdict, source, _EVENT_TYPE + verdict.outcome, event_id(verdict))


def event_id(verdict: Verdict) -> str:
    """Return an id that is the same for every delivery and replay of an event, and differs between verdicts.

    It is a hash of the outcome, the version and the article's id. A retraction has no version, so its time of arrival
    is used. The outcome tells a release from the flag that it undoes.
    """
    return _id_of(verdict.outcome, verdict)


def _attributes(verdict: Verdict, source: str, kind: str, event: str) -> Headers:
    attributes = [
        _text("ce_specversion", "1.0"),
        _text("ce_id", event),
        _text("ce_source", source),
        _text("ce_type", kind),
        _text("ce_time", verdict.decided_at),
        _text("content-type", "application/json"),
    ]
    if verdict.id and not _FORBIDDEN_CHARS.search(verdict.id):
        attributes.insert(-1, _text("ce_subject", verdict.id))
    return attributes


def _id_of(kind: str, verdict: Verdict) -> str:
    parts = (kind, verdict.version or verdict.arrived_at, verdict.id)
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=_EVENT_ID_BYTES).hexdigest()


def _schema_headers(answer: JudgedRecord, schema: str) -> Headers:
    scheme = answer.event.verdict.scheme
    return [_text(SCHEMA, schema)] + ([] if scheme is None else [_text(SCHEME, scheme)])


def _record_headers(answer: JudgedRecord) -> Headers:
    return origin_headers(answer.record) + trace_headers(answer.record.headers)


def _text(name: str, value: str) -> Header:
    return name, value.encode()
