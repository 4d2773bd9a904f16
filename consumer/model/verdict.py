"""Verdicts on versions of articles, and their events: the bytes that are stored and sent.

Older and newer consumers share a store while a new version rolls out, so older ones read events of newer ones. Readers
skip unknown fields, and a stored event is sent as its bytes (``VerdictEvent.encoded``). It is encoded again only to set
``truncated``. A new field must therefore be optional. A change of a field's meaning, another outcome, or a wider limit
needs another ``SCHEMA``, which older consumers refuse.
"""

from typing import Annotated, Final, Literal, Self

import msgspec

from consumer.model.errors import StoreMismatch

SCHEMA: Final = "dupwatch.verdict/1"
MATCHES_MAX = 5
SHARED_KEYWORDS_MAX = 10
PARTS_MAX = 5
BANK_MATCHES_MAX = 10
RELEASED_BY_CHARS_MAX = 200
REASON_CHARS_MAX = 2_000

Outcome = Literal["unique", "duplicate", "retracted"]
Similarity = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Distance = Annotated[int, msgspec.Meta(ge=0)]
VersionName = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})+$")]
FingerprintHex = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{16}){1,2}$")]
Timestamp = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier version that is near.

    ``distance`` is in bits, ``similarity`` from 0 to 1, or None with plain SimHash.
    """

    id: str
    version: VersionName
    distance: Distance
    similarity: Similarity | None


class Released(msgspec.Struct, frozen=True, kw_only=True):
    """The flag that a release undid: the version that it named, its time, and who undid the flag and why."""

    duplicate_of: str
    duplicate_of_version: VersionName
    flagged_at: Timestamp
    by: Annotated[str, msgspec.Meta(max_length=RELEASED_BY_CHARS_MAX)] | None = None
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)] | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier article that shares a long stretch with this one, and the share of each that is in the other."""

    id: str
    version: VersionName
    share_of_this: Similarity
    share_of_that: Similarity


class SeenBefore(msgspec.Struct, frozen=True, kw_only=True):
    """The first and the last earlier arrival of the same normalised text under any id.

    ``times`` is a lower bound of the number of such arrivals.
    """

    first: Timestamp
    last: Timestamp
    times: Annotated[int, msgspec.Meta(ge=1)]


class EndedBefore(msgspec.Struct, frozen=True, kw_only=True):
    """A near version under another id that was retracted or replaced before this version arrived.

    ``similarity`` is from 0 to 1, or None with plain SimHash.
    """

    id: str
    version: VersionName
    ended_at: Timestamp
    similarity: Similarity | None


class BankMention(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a bank that this article repeats, and the action of the bank: see ``storage.records.BankMatch``."""

    bank: str
    item: str
    action: Literal["deny", "allow"]
    form: Literal["equal", "similar", "part"]
    similarity: Similarity


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict. ``docs/use/events.md`` describes all fields of the event.

    A retraction has only its ``id``, its outcome, ``arrived_at``, ``decided_at`` and, if it applies, ``stamped_at``.
    Its other fields are null or empty.

    These fields are left out unless they apply:

    - ``released``: the event is a release.
    - ``stamped_at``: the message claims this time, and the version arrived at another time.
    - ``extracted``: the body was a web page.
    - ``seen_before``: the same text came before the window began.
    - ``parts``: the article shares a long stretch with articles that are not near.
    - ``ended_before``: the version is unique, and a near one ended before it arrived.
    - ``banks``: the article repeats a known text.

    ``source`` and ``original_source`` are set only in flags, and in releases of flags that have them. They are "" for
    an article without a source.
    """

    schema: Literal["dupwatch.verdict/1"] = SCHEMA
    id: str
    version: VersionName | None = None
    outcome: Outcome
    duplicate_of: str | None = None
    duplicate_of_version: VersionName | None = None
    distance: Distance | None = None
    similarity: Similarity | None = None
    cluster: str | None = None
    matches: Annotated[tuple[Match, ...], msgspec.Meta(max_length=MATCHES_MAX)] = ()
    shared_keywords: Annotated[tuple[str, ...], msgspec.Meta(max_length=SHARED_KEYWORDS_MAX)] = ()
    fingerprint: FingerprintHex | None = None
    scheme: str | None = None
    truncated: bool = False
    arrived_at: Timestamp
    decided_at: Timestamp
    stamped_at: Timestamp | msgspec.UnsetType = msgspec.UNSET
    extracted: str | msgspec.UnsetType = msgspec.UNSET
    released: Released | msgspec.UnsetType = msgspec.UNSET
    seen_before: SeenBefore | msgspec.UnsetType = msgspec.UNSET
    parts: Annotated[tuple[Part, ...], msgspec.Meta(max_length=PARTS_MAX)] | msgspec.UnsetType = msgspec.UNSET
    ended_before: EndedBefore | msgspec.UnsetType = msgspec.UNSET
    source: str | msgspec.UnsetType = msgspec.UNSET
    original_source: str | msgspec.UnsetType = msgspec.UNSET
    banks: Annotated[tuple[BankMention, ...], msgspec.Meta(max_length=BANK_MATCHES_MAX)] | msgspec.UnsetType = (
        msgspec.UNSET
    )


class _Outcome(msgspec.Struct, frozen=True):
    """The outcome alone, decoded without the rest of an event."""

    outcome: Outcome


_DECODER = msgspec.json.Decoder(Verdict)
_OUTCOME_DECODER = msgspec.json.Decoder(_Outcome)
_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def encode(verdict: Verdict) -> bytes:
    """Return the event as JSON without a line end; equal verdicts give equal bytes."""
    return msgspec.json.encode(verdict)


class UnreadableEvent(StoreMismatch, ValueError):  # noqa: N818  # named for the event, as its siblings are
    """A verdict event in the store cannot be read."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"the store is damaged: a verdict event cannot be read: {error}. Restore the store from a copy, or use "
            "another one."
        )


def decode_verdict(data: bytes) -> Verdict:
    """Decode an event, ignoring fields that later versions of dupwatch have added.

    Raises ``UnreadableEvent`` for bytes that are not an event of this schema.
    """
    try:
        return _DECODER.decode(data)
    except _MALFORMED as error:
        raise UnreadableEvent(error) from error


def outcome_of(event: bytes) -> Outcome:
    """Return the outcome of an event without decoding the rest. The judge needs it for every candidate.

    Raises ``UnreadableEvent`` if the event is malformed, or if this version of dupwatch does not know the outcome.
    """
    try:
        return _OUTCOME_DECODER.decode(event).outcome
    except _MALFORMED as error:
        raise UnreadableEvent(error) from error


class VerdictEvent(msgspec.Struct, frozen=True):
    """A verdict and its encoded event: the bytes that the store holds and the sink sends.

    A new verdict is encoded once, and bytes from a store are decoded once; later stages use the bytes and the verdict.
    Bytes from a store stay unchanged, including unknown fields, unless ``truncated`` is called.

    ``near_miss`` is the event of a sampled near miss of this article, if any. It is sent to topics only.
    """

    encoded: bytes
    verdict: Verdict
    near_miss: bytes | None = None

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """Encode a new verdict."""
        return cls(encode(verdict), verdict)

    @classmethod
    def read(cls, encoded: bytes) -> Self:
        """Decode an event from a store, and keep its bytes. Raises ``UnreadableEvent``."""
        return cls(encoded, decode_verdict(encoded))

    def truncated(self) -> Self:
        """Return the event with ``truncated`` set, encoded again without unknown fields."""
        verdict = msgspec.structs.replace(self.verdict, truncated=True)
        return msgspec.structs.replace(self, encoded=encode(verdict), verdict=verdict)
