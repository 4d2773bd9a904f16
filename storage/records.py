"""What a store holds: versions of articles, their arrivals, and tombstones.

Identities are digests, so that keys have one width and spread evenly:

- *id hash*: BLAKE2b-128 of the article's id in UTF-8;
- *reference*: id hash (16 bytes) + content digest (16 bytes). It names one version, and is what postings carry.
  128 bits each, because whoever writes articles chooses both: with 64 bits a pair of contents that share a
  reference would cost a spammer an afternoon, and the second would inherit the first one's verdict.
"""

import hashlib
from typing import Final, NamedTuple

import msgspec

ID_HASH_BYTES = 16
DIGEST_BYTES = 16
REFERENCE_BYTES = ID_HASH_BYTES + DIGEST_BYTES


class Arrival(NamedTuple):
    """When something came: one total order for everyone, written once and never changed.

    ``time_ms`` is the record's time in milliseconds since 1970, ``sequence`` its offset or line, and the reference
    breaks the ties that two feeds can make.
    """

    time_ms: int
    sequence: int
    reference: bytes


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is kept of one version. Written once, by the compare-and-set that creates it.

    ``fingerprint`` is big-endian, ``one_bits`` are the 64 one-bit minima of lane 1. ``keys`` are the posting keys
    under which the version can be found, none for a text without keywords. ``sketch`` is what similarity is
    estimated from. ``text_digest`` is of the normalised body alone, for the short-text rule. ``facts`` is a sample of
    what tells stories in the same words apart; empty where there are none, or none were asked for. ``stamped_ms`` is
    the time that its message claims, where the version arrived at another one.
    """

    reference: bytes
    id: str
    time_ms: int
    sequence: int
    scheme: str
    kind: int
    fingerprint: bytes
    one_bits: bytes
    keys: tuple[bytes, ...]
    sketch: bytes
    text_digest: bytes
    keywords: tuple[tuple[str, float], ...]
    source: str = ""
    title: str = ""
    url: str = ""
    lang: str = ""
    published_at: float | None = None
    facts: bytes = b""
    stamped_ms: int | None = None

    @property
    def arrival(self) -> Arrival:
        """The version's place in the order of everything that came."""
        return Arrival(self.time_ms, self.sequence, self.reference)

    @property
    def id_hash(self) -> bytes:
        """The first half of the reference: the same for every version of an id."""
        return self.reference[:ID_HASH_BYTES]


_encode: Final = msgspec.msgpack.Encoder().encode


def encode_record(record: Record) -> bytes:
    """A record as MessagePack: its fields as an array, in the order of their definition.

    ``stamped_ms`` is left out where there is none, so such a record is the same bytes as before there was the field.
    """
    if record.stamped_ms is None:
        return _encode(msgspec.structs.astuple(record)[:-1])
    return _encode(record)


class Version(NamedTuple):
    """A version on its way into a store; ``body`` is None where bodies are not kept."""

    record: Record
    body: str | None


class Tombstone(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A retraction of an id. ``event`` is the verdict event it was answered with, kept so that a replay repeats it.

    The reference's second half is a digest of where the retraction stood in the feed, since it has no content.
    """

    reference: bytes
    id: str
    time_ms: int
    sequence: int
    event: bytes

    @property
    def arrival(self) -> Arrival:
        """The tombstone's place in the order of everything that came."""
        return Arrival(self.time_ms, self.sequence, self.reference)

    @property
    def id_hash(self) -> bytes:
        """The first half of the reference: whose tombstone this is."""
        return self.reference[:ID_HASH_BYTES]


class Stored(NamedTuple):
    """A version as a store holds it.

    ``verdict`` is the verdict event's bytes, None while the version is pending. ``ends_at`` is the arrival of the id's
    next version or tombstone: from then on the version is no longer in force. None while nothing followed.
    ``released_from`` is the version that this one was flagged against until a person released it; ``verdict`` is the
    release's event then, so that nobody who reads verdicts can miss it.
    """

    record: Record
    verdict: bytes | None
    ends_at: Arrival | None
    released_from: bytes | None = None


class Release(NamedTuple):
    """A flag undone: the version ``reference`` gets ``event`` as its verdict, and is near ``of`` no more.

    ``of`` is the reference of the version that it was flagged against.
    """

    reference: bytes
    event: bytes
    of: bytes


def id_hash(article_id: str) -> bytes:
    """The 16 bytes that stand for an id in every key."""
    return hashlib.blake2b(article_id.encode(), digest_size=ID_HASH_BYTES).digest()


def reference_of(article_id: str, content: bytes) -> bytes:
    """The 32 bytes that name one version: whose it is, and a digest of ``content``."""
    return id_hash(article_id) + hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
