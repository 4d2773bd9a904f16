"""The bodies of requests and answers, except problems. The OpenAPI document is generated from these types."""

from typing import Annotated, Any, Literal

import msgspec

from consumer.fingerprint import TextKindName
from consumer.model.verdict import (
    MATCHES_MAX,
    REASON_CHARS_MAX,
    RELEASED_BY_CHARS_MAX,
    BankMention,
    EndedBefore,
    Part,
    SeenBefore,
    Verdict,
)
from consumer.web.problems import Fault

ARTICLES_MAX = 1_000
VERSION_CHARS_MAX = 64
_NO_NUL = "^[^\\u0000]*$"
_Id = Annotated[
    str,
    msgspec.Meta(min_length=1, pattern=_NO_NUL, description="Up to 512 bytes of UTF-8. Integers are accepted, too."),
]
_Body = Annotated[str, msgspec.Meta(pattern=_NO_NUL, description="The text. Settings limit its length.")]
_Title = Annotated[str, msgspec.Meta(max_length=4_096, pattern=_NO_NUL)]
_Source = Annotated[str, msgspec.Meta(max_length=512, pattern=_NO_NUL)]
_Url = Annotated[str, msgspec.Meta(max_length=8_192, pattern=_NO_NUL)]
_Lang = Annotated[str, msgspec.Meta(max_length=64, pattern=_NO_NUL)]
"""These types describe fields as in a feed; the decoder of feeds checks them."""


class ArticleToCheck(msgspec.Struct, frozen=True):
    """An article to check. Only ``body`` is required: a text alone is enough, and any article to store can be checked.

    The setting ``source.fields`` names the fields; these are the defaults. Other members are ignored. The article is
    not compared with stored versions of its own ``id``. ``source`` selects the rules for that source. ``lang`` is a
    language tag (BCP 47).
    """

    body: _Body
    id: _Id | None = None
    title: _Title | None = None
    source: _Source | None = None
    url: _Url | None = None
    lang: _Lang | None = None


class CheckRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The articles to check, up to 1,000."""

    articles: Annotated[tuple[ArticleToCheck, ...], msgspec.Meta(min_length=1, max_length=ARTICLES_MAX)]


class CheckMatch(msgspec.Struct, frozen=True):
    """A kept article that the checked one would repeat, with the evidence.

    ``version`` is its name in events. ``distance`` is in bits. ``similarity`` is from 0 to 1, or null if the store
    judges by fingerprints alone. ``shared_keywords`` begin with the heaviest. ``url`` and ``title`` are "" if not
    stored. ``cluster`` is the story: the kept article at the end of the chain of ``duplicate_of``.
    """

    id: str
    version: str
    title: str
    url: str
    arrived_at: str
    distance: int
    similarity: float | None
    shared_keywords: tuple[str, ...]
    cluster: str


_TextKind = Annotated[
    TextKindName,
    msgspec.Meta(
        description="How the text is compared: long by fingerprint and similarity, shingled by similarity, short only "
        "with texts that are the same apart from case and spaces, empty not at all."
    ),
]
_Truncated = Annotated[bool, msgspec.Meta(description="A limit cut the search short.")]
_Pending = Annotated[bool, msgspec.Meta(description="A near article is being judged: the answer may change.")]


class UniqueCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="outcome", tag="unique"):
    """The article would repeat nothing.

    ``seen_before`` is present if the same text came before the window began, ``parts`` if it shares a long stretch with
    articles that are not near, ``ended_before`` if a near article was retracted or replaced, and ``banks`` if it
    repeats known texts.
    """

    id: str | None
    text_kind: _TextKind
    truncated: _Truncated
    pending: _Pending
    seen_before: SeenBefore | None = None
    parts: tuple[Part, ...] = ()
    ended_before: EndedBefore | None = None
    banks: tuple[BankMention, ...] = ()


class DuplicateCheck(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="outcome", tag="duplicate"
):
    """The article would be flagged. The best match comes first. ``matches_found`` also counts matches left out."""

    id: str | None
    text_kind: _TextKind
    matches: Annotated[tuple[CheckMatch, ...], msgspec.Meta(max_length=MATCHES_MAX)]
    matches_found: int
    truncated: _Truncated
    pending: _Pending
    seen_before: SeenBefore | None = None
    parts: tuple[Part, ...] = ()
    banks: tuple[BankMention, ...] = ()


class FailedCheck(msgspec.Struct, frozen=True, tag_field="outcome", tag="error"):
    """The article cannot be checked. The others in the request are checked."""

    id: str | None
    problem: Fault


CheckResult = UniqueCheck | DuplicateCheck | FailedCheck


class CheckAnswer(msgspec.Struct, frozen=True):
    """A result for each article, in the order of the request."""

    results: tuple[CheckResult, ...]


class ArticleToStore(msgspec.Struct, frozen=True):
    """An article as in a feed. The setting ``source.fields`` names the fields; these are the defaults.

    Other members are allowed, and a clean feed gets them, too. ``published_at`` is RFC 3339, or seconds since 1970;
    any other value is ignored.
    """

    id: _Id
    body: _Body
    title: _Title | None = None
    source: _Source | None = None
    url: _Url | None = None
    lang: _Lang | None = None
    published_at: Any = None


class StoreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The articles to store, up to 1,000. They are judged in their order."""

    articles: Annotated[tuple[ArticleToStore, ...], msgspec.Meta(min_length=1, max_length=ARTICLES_MAX)]


class FailedArticle(msgspec.Struct, frozen=True, tag_field="outcome", tag="error"):
    """The article cannot be judged, and is not stored. The others in the request are judged and stored."""

    problem: Fault


class ReleaseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who undoes a flag, and why. ``version`` is the name of a version in events, by default the latest."""

    by: Annotated[str, msgspec.Meta(min_length=1, max_length=RELEASED_BY_CHARS_MAX)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=REASON_CHARS_MAX)]
    version: Annotated[str, msgspec.Meta(max_length=VERSION_CHARS_MAX)] | None = None


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A version of an article, or a retraction, in which only ``kind``, ``version`` and ``arrived_at`` are set.

    ``ends_at`` is when a later version or a retraction replaced it, null while it is in force. ``verdict`` is null
    while it is pending.
    """

    kind: Literal["version", "retraction"]
    version: str
    arrived_at: str
    ends_at: str | None = None
    title: str = ""
    source: str = ""
    url: str = ""
    lang: str = ""
    text_kind: _TextKind | None = None
    verdict: Verdict | None = None


class ChainLink(msgspec.Struct, frozen=True):
    """A version in the chain from the latest version to the kept one at the end. ``outcome`` is null while pending."""

    id: str
    version: str
    title: str
    url: str
    arrived_at: str
    outcome: Literal["unique", "duplicate"] | None


class ArticleAnswer(msgspec.Struct, frozen=True):
    """The stored versions and retractions of an article, by arrival, and the chain to its latest version's original."""

    id: str
    retracted: bool
    history: tuple[HistoryEntry, ...]
    chain: tuple[ChainLink, ...]


class StoreCounts(msgspec.Struct, frozen=True):
    """The counts of ``dupwatch store stats``. ``size_bytes`` is null if unknown."""

    versions: int
    pending: int
    tombstones: int
    postings: int
    rows: int
    crowded_rows: int
    widest_row: int
    seen_texts: int
    size_bytes: int | None


class WindowEstimate(msgspec.Struct, frozen=True):
    """The number of kept articles in the window. ``error`` is 0 if they were counted.

    On HBase and in very large stores the number is an estimate from a sample, and ``error`` is relative, in both
    directions. Both are null while the sample is too small.
    """

    articles: int | None
    error: float | None


class StatsAnswer(msgspec.Struct, frozen=True):
    """The contents of the store at ``counted_at``. ``counts`` is null on HBase, where counting would read all of it."""

    counted_at: str
    plan: str
    scheme: str
    window: WindowEstimate
    counts: StoreCounts | None
