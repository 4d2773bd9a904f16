"""Records of articles: their keys and references."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from consumer.fingerprint import BlockPlan, Fingerprints, TextKind
from consumer.judge.candidates import probe_keys
from consumer.judge.versions import ArrivalTime, VersionBuilder, tombstone
from consumer.model.article import Article
from consumer.model.verdict import decode_verdict
from storage.postings import lane_of
from storage.records import Record, id_hash
from tests.builders import TIME_MS
from tests.chaos.near_articles import SETTINGS

PLAN = BlockPlan.named("4x16")
ARTICLE = Article(id="a", body="The ferry came in at dawn.", title="A ferry", source="wire")


def fingerprints(*kinds: TextKind, digest: int = 0) -> Fingerprints:
    """Return fingerprints for texts of these kinds; all numbers are invented."""
    count = len(kinds)
    return Fingerprints(
        codes=(np.arange(count, dtype=np.uint64) + np.uint64(0x0123_4567_89AB_CD00))[:, None],
        sketches=np.zeros((count, 256), np.uint8),
        one_bits=np.full(count, 0xF0F0, np.uint64),
        bands=np.full((count, 4), 0xABCD << 48, np.uint64),
        keywords=tuple((("ferry", 2.0),) for _ in kinds),
        kinds=np.array(kinds, np.uint8),
        text_digests=np.full((count, 16), digest, np.uint8),
        keyword_counts=np.ones(count, np.int64),
    )


def built(article: Article = ARTICLE, kind: TextKind = TextKind.LONG, *, lane1: bool = True, digest: int = 0) -> Record:
    """Return the record of one article."""
    builder = VersionBuilder("test/1", PLAN, lane1)
    (version,) = builder.versions([article], [ArrivalTime(TIME_MS, 3)], fingerprints(kind, digest=digest))
    assert version.body == article.body
    return version.record


@pytest.mark.parametrize(
    ("kind", "lane1", "lanes"),
    [
        (TextKind.EMPTY, True, []),
        (TextKind.EMPTY, False, []),
        (TextKind.SHORT, True, [0] * 4),
        (TextKind.SHORT, False, [0] * 4),
        (TextKind.LONG, True, [0] * 4 + [1] * 4),
        (TextKind.LONG, False, [0] * 4),
        (TextKind.SHINGLED, True, [1] * 4),
        (TextKind.SHINGLED, False, [0] * 4),
    ],
)
def test_a_text_gets_the_keys_of_its_kind(kind: TextKind, lanes: list[int], *, lane1: bool) -> None:
    """No keys for an empty text, blocks for a short one or without lane 1, bands for one that has shingles."""
    record = built(kind=kind, lane1=lane1)
    assert [lane_of(key) for key in record.keys] == lanes
    assert record.kind == kind


def test_the_keys_are_those_of_the_plan() -> None:
    """The blocks from the most significant on, then the bands."""
    record = built()
    assert [key.hex() for key in record.keys] == [
        "000123", "014567", "0289ab", "03cd00", "10abcd", "11abcd", "12abcd", "13abcd",
    ]  # fmt: skip
    assert record.fingerprint.hex() == "0123456789abcd00"
    assert record.one_bits.hex() == "000000000000f0f0"


@pytest.mark.parametrize("max_distance", [3, 7])
def test_a_record_is_looked_up_under_the_keys_that_it_is_stored_under(max_distance: int) -> None:
    """With any radius, which starts from the stored fingerprint, whose bytes are big-endian."""
    settings = replace(SETTINGS, max_distance=max_distance)
    assert set(built().keys) <= set(probe_keys(built(), settings))


@pytest.mark.parametrize(
    "change",
    [
        {"source": "blog"},
        {"url": "https://example.org"},
        {"lang": "en"},
        {"published_at": 5.0},
        {"title": "a   FERRY"},
        {"body": "another, of the same digest"},
    ],
)
def test_the_reference_does_not_depend_on_what_is_not_content(change: dict[str, object]) -> None:
    """Source, URL, language and time are not content, and titles are normalised."""
    assert built(msgspec.structs.replace(ARTICLE, **change)).reference == built().reference


def test_the_reference_depends_on_id_title_and_body() -> None:
    """A change of any of these makes another version, or another article."""
    references = {
        built().reference,
        built(msgspec.structs.replace(ARTICLE, id="b")).reference,
        built(msgspec.structs.replace(ARTICLE, title="Another ferry")).reference,
        built(msgspec.structs.replace(ARTICLE, title="")).reference,
        built(digest=1).reference,
    }
    assert len(references) == 5
    assert built().reference[:16] == id_hash("a")


def test_the_reference_is_of_the_text_as_written() -> None:
    """A scheme that folds a script finds what was said under another; the digest is of the folded text."""
    written = np.full((1, 16), 7, np.uint8)
    folded = replace(fingerprints(TextKind.LONG, digest=5), written_digests=written)
    (version,) = VersionBuilder("test/2", PLAN, lane1=True).versions([ARTICLE], [ArrivalTime(TIME_MS, 3)], folded)
    assert version.record.reference == built(digest=7).reference
    assert version.record.text_digest == bytes([5]) * 16


def test_each_article_of_a_batch_gets_its_own() -> None:
    """Arrivals, fingerprints and fields belong to their article."""
    articles = [msgspec.structs.replace(ARTICLE, id=f"article {n}", source=f"source {n}") for n in range(3)]
    arrivals = [ArrivalTime(TIME_MS + n, 10 * n) for n in range(3)]
    kinds = (TextKind.LONG, TextKind.EMPTY, TextKind.SHORT)
    versions = VersionBuilder("test/1", PLAN, lane1=True).versions(articles, arrivals, fingerprints(*kinds))
    assert [
        (
            version.record.id,
            version.record.source,
            version.record.time_ms,
            version.record.sequence,
            version.record.fingerprint[-1],
        )
        for version in versions
    ] == [(f"article {n}", f"source {n}", TIME_MS + n, 10 * n, n) for n in range(3)]
    assert [TextKind(version.record.kind) for version in versions] == list(kinds)


def test_a_retraction_is_named_by_where_it_stood() -> None:
    """The same place is a replay, another place is another retraction; the event is stored with it."""
    first = tombstone("a", ArrivalTime(TIME_MS, 3), b"feed:3", TIME_MS + 9)
    again = tombstone("a", ArrivalTime(TIME_MS + 5, 3), b"feed:3", TIME_MS + 10)
    other = tombstone("a", ArrivalTime(TIME_MS, 4), b"feed:4", TIME_MS + 9)
    assert first.reference == again.reference != other.reference
    assert first.id_hash == id_hash("a")
    assert (first.time_ms, first.sequence) == (TIME_MS, 3)
    verdict = decode_verdict(first.event)
    assert (verdict.id, verdict.outcome, verdict.version) == ("a", "retracted", None)


@pytest.mark.parametrize(
    ("marked", "byte", "lane1", "lanes"),
    [
        (True, 7, True, [0] * 4 + [1] * 4),
        (True, 0, True, [0] * 4),
        (True, 7, False, [0] * 4),
        (False, 7, True, [0] * 4),
    ],
)
def test_a_short_text_whose_letters_are_compared_has_keys_of_both_lanes(
    byte: int, lanes: list[int], *, marked: bool, lane1: bool
) -> None:
    """So that a long one with the same letters finds it; one without a shingle has none of lane 1."""
    made = replace(fingerprints(TextKind.SHORT), is_marked=marked, sketches=np.full((1, 256), byte, np.uint8))
    (version,) = VersionBuilder("test/1", PLAN, lane1).versions([ARTICLE], [ArrivalTime(TIME_MS, 3)], made)
    assert [lane_of(key) for key in version.record.keys] == lanes
