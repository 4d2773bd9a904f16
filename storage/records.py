"""The contents of a store: versions of articles, their arrivals, and tombstones.

Identities are digests, so that keys have one width and spread evenly:

- *id hash*: BLAKE2b-128 of the article's id in UTF-8;
- *reference*: id hash (16 bytes) + content digest (16 bytes). It names one version. Postings contain it.
  Both halves have 128 bits, because the authors of articles choose both the id and the content. With 64 bits a spammer
  could find two contents with the same reference in an afternoon, and the second would inherit the first one's verdict.
"""

import hashlib
from typing import Annotated, Final, NamedTuple

import msgspec

ID_HASH_BYTES = 16
DIGEST_BYTES = 16
REFERENCE_BYTES = ID_HASH_BYTES + DIGEST_BYTES
ANCHOR_BYTES = 8
DENY: Final = "deny"
ALLOW: Final = "allow"


class Arrival(NamedTuple):
    """The arrival of a version or tombstone. Written once and never changed, it gives all processes one total order.

    ``time_ms`` is the time of arrival in milliseconds since 1970. ``sequence`` is an offset, a line number or a
    counter. The reference breaks ties between feeds.
    """

    time_ms: int
    sequence: int
    reference: bytes


class Origin(NamedTuple):
    """The origin of a version or tombstone: a place in a feed, or a request with a key.

    ``feed`` names a partition, a file or the owner of a request. ``sequence`` is the offset or line there. A request
    has no place; its ``key`` distinguishes it from the owner's other requests.
    """

    feed: str
    sequence: int | None
    key: str | None = None

    def __str__(self) -> str:
        """Return the feed and the place, joined by a colon, or the key and the owner of a request."""
        if self.key is None:
            return f"{self.feed}:{self.sequence}"
        return f"request {self.key}{f' of {self.feed}' if self.feed else ''}"


def _origin(feed: str | None, key: str | None, sequence: int) -> Origin | None:
    return None if feed is None else Origin(feed, None if key is not None else sequence, key)


class BankMatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item of a bank that an article repeats.

    ``action`` is "deny" or "allow". ``form`` is how the item was found: "equal" text, "similar" text, or as a "part" of
    the article. ``similarity``, from 0 to 1, is that of the two texts; for a part it is the share of the item that the
    article contains.
    """

    bank: str
    item: str
    action: str
    form: str
    similarity: float


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The stored data of one version, without its verdict. Written once, when the version is created.

    ``fingerprint`` is big-endian, ``one_bits`` are the 64 one-bit minima of lane 1. ``keys`` are the posting keys under
    which the version is found. Two kinds of texts have none: those that match nothing, and those that a migration
    stored without keys because other versions of the same text have them (docs/decisions/0049). Similarity is estimated
    from ``sketch``. ``text_digest`` is of the normalised body alone, for the short-text rule. ``facts`` is a sample of
    the numbers, dates and names that tell stories in the same words apart; empty if there are none or the scheme does
    not use them. ``stamped_ms`` is the time that the message claims, if it differs from the arrival. If the article
    arrived as a web page, ``extracted`` says what was taken from it. Texts that share a part with this one find it by
    its ``anchors`` (8 bytes each), and ``sample`` tells how much they share; both are None if parts are not searched.

    ``feed`` and ``key`` are those of the origin, or None for a request without a key and in records of earlier versions
    of dupwatch. ``stretch`` counts how often the content had ended before it came into force this time, or None for
    never.

    ``bank_matches`` are the known texts that the article repeats, or None if there are none. The process that creates
    the record finds them, and every judge reads them here.

    Some fields of the article ``a7`` in line 7 of a file, with the plan ``4x16``::

        reference    id_hash("a7"), then 16 bytes of digest
        sequence     7
        fingerprint  01 23 45 67 89 ab cd ef
        keys         00 01 23, 01 45 67, 02 89 ab, 03 cd ef, and those of the bands
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
    extracted: str | None = None
    anchors: bytes | None = None
    sample: bytes | None = None
    feed: str | None = None
    key: str | None = None
    stretch: int | None = None
    bank_matches: tuple[BankMatch, ...] | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether the article repeats a text that everybody may repeat."""
        # Called several times for every article, and hardly any article has matches.
        return self.bank_matches is not None and any(match.action == ALLOW for match in self.bank_matches)

    @property
    def origin(self) -> Origin | None:
        """The origin of the version, or None if it is not stored."""
        return _origin(self.feed, self.key, self.sequence)

    @property
    def arrival(self) -> Arrival:
        """The version's place in the order of all arrivals."""
        return Arrival(self.time_ms, self.sequence, self.reference)

    @property
    def id_hash(self) -> bytes:
        """The first half of the reference, which all versions of an id share."""
        return self.reference[:ID_HASH_BYTES]


class Version(NamedTuple):
    """A version to be stored; ``body`` is None where bodies are not kept.

    ``has_fixed_arrival`` says that the time of arrival comes from the record, so that it is the same in every
    delivery. ``known_shingles`` are the hashes of the text's shingles that occur in banks, 8 bytes each. Neither is
    stored. An example::

        (stored,) = store.create([Version(record, "The council has approved the new budget.")])
        stored.verdict  # None: the version is pending
    """

    record: Record
    body: str | None
    has_fixed_arrival: bool = True
    known_shingles: bytes = b""

    @property
    def reference(self) -> bytes:
        """The reference of the record, under the same name as in a tombstone."""
        return self.record.reference


class Tombstone(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A retraction of an id. ``event`` is its verdict event, stored so that a replay returns the same one.

    A retraction has no content: the second half of its reference is a digest of its place in a feed or of its request.
    """

    reference: bytes
    id: str
    time_ms: int
    sequence: int
    event: bytes
    feed: str | None = None
    key: str | None = None

    @property
    def origin(self) -> Origin | None:
        """The origin of the retraction, or None if it is not stored."""
        return _origin(self.feed, self.key, self.sequence)

    @property
    def arrival(self) -> Arrival:
        """The tombstone's place in the order of all arrivals."""
        return Arrival(self.time_ms, self.sequence, self.reference)

    @property
    def id_hash(self) -> bytes:
        """The first half of the reference, which names the id that is retracted."""
        return self.reference[:ID_HASH_BYTES]


_encode: Final = msgspec.msgpack.Encoder().encode
_RECORD_FIELDS_MIN: Final = Record.__struct_fields__.index("stamped_ms")
_TOMBSTONE_FIELDS_MIN: Final = Tombstone.__struct_fields__.index("feed")
"""How many fields are always encoded. All later fields, including future ones, default to None."""


def encode_record(record: Record) -> bytes:
    """Encode a record as MessagePack: an array of its fields in the order of their definition.

    Trailing None values of fields that were added later are omitted, so that earlier records keep their bytes.
    """
    return _encode_fields(record, _RECORD_FIELDS_MIN)


def encode_tombstone(tombstone: Tombstone) -> bytes:
    """Encode a tombstone as ``encode_record`` encodes a record."""
    return _encode_fields(tombstone, _TOMBSTONE_FIELDS_MIN)


def _encode_fields(stored: Record | Tombstone, fields_min: int) -> bytes:
    values = msgspec.structs.astuple(stored)
    end = len(values)
    while end > fields_min and values[end - 1] is None:
        end -= 1
    return _encode(values[:end])


class StoredVersion(NamedTuple):
    """A version as a store holds it.

    ``verdict`` is the verdict event's bytes, None while the version is pending. ``ends_at`` is the arrival of the id's
    next version or tombstone, which puts this version out of force; None while nothing has followed. ``released_from``
    is the reference of the version that this one was flagged against until a person released it. Then ``verdict`` is
    the event of the release, so that no reader of verdicts can miss it.
    """

    record: Record
    verdict: bytes | None
    ends_at: Arrival | None
    released_from: bytes | None = None


class Release(NamedTuple):
    """A reversed flag: the version ``reference`` gets ``event`` as its verdict.

    It no longer counts as near the version that it was flagged against, whose reference is ``released_from``.
    """

    reference: bytes
    event: bytes
    released_from: bytes


def id_hash(article_id: str) -> bytes:
    """Return the hash of an id, 16 bytes, which represents the id in every key."""
    return hashlib.blake2b(article_id.encode(), digest_size=ID_HASH_BYTES).digest()


def reference_of(article_id: str, content: bytes) -> bytes:
    """Return the reference of a version: the hash of its id and a digest of ``content``, 32 bytes."""
    return id_hash(article_id) + hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def stretch_reference(first: bytes, stretch: int) -> bytes:
    """Return the reference of a stretch of some content. ``first`` is the reference of stretch 0, the first one."""
    if not stretch:
        return first
    digest = hashlib.blake2b(
        first[ID_HASH_BYTES:], digest_size=DIGEST_BYTES, person=b"stretch", salt=stretch.to_bytes(4, "big")
    )
    return first[:ID_HASH_BYTES] + digest.digest()


class CapacityPlan(msgspec.Struct, frozen=True):
    """The capacity that a store is created for: a block plan, and the expected number of articles in the window.

    ``dupwatch store init --articles`` writes it into ``meta``. It is not a setting: the first consumer binds the store
    to its settings, as for any other store, but a consumer with another plan is refused.
    """

    articles: Annotated[int, msgspec.Meta(ge=1)]
    plan: str


def encode_planned(planned: CapacityPlan) -> bytes:
    """Return the JSON that ``meta`` holds."""
    return msgspec.json.encode(planned)


def decode_planned(value: bytes) -> CapacityPlan:
    """Decode the JSON in ``meta``. Unknown members are skipped. Raises ``ValueError``."""
    return msgspec.json.decode(value, type=CapacityPlan)
