"""Verdicts and dead letters: their bytes are what the documentation of the formats says."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from consumer.decode.article import FieldMap, decode
from consumer.judge.decision import Duplicate, Neighbour
from consumer.judge.events import (
    duplicate_event,
    kept_event,
    original_of,
    reference_in,
    released_event,
    retracted_event,
)
from consumer.model.article import ExtractionOutcome, Reason
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX, LetterPosition, dead_letter, encode
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.model.verdict import EndedBefore, Match, Part, Released, SeenBefore, Verdict, decode_verdict
from consumer.model.verdict import encode as encode_verdict
from tests.builders import TIME_MS, make_record

DOCS = Path(__file__).parents[3] / "docs"
PLACE = LetterPosition("feed.jsonl", 3, 120)
FAULT = BadRecord(Reason.INVALID_JSON, "no JSON")


def schema(name: str) -> Draft202012Validator:
    """Return the published schema of a format."""
    content = json.loads((DOCS / "schemas" / f"{name}.schema.json").read_bytes())
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


VERDICT, LETTER, ARTICLE = schema("verdict"), schema("dead-letter"), schema("article")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
VERSIONS = st.binary(min_size=16, max_size=16).map(bytes.hex)
SIMILARITIES = st.none() | st.floats(0, 1).map(lambda value: round(value, 4))
SHARES = st.floats(0, 1).map(lambda value: round(value, 2))
DISTANCES = st.integers(0, 64)
TIMES = st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z")
MATCHES = st.builds(Match, id=TEXTS, version=VERSIONS, distance=DISTANCES, similarity=SIMILARITIES)
JUDGED = {
    "id": TEXTS,
    "version": VERSIONS,
    "cluster": TEXTS,
    "fingerprint": st.binary(min_size=8, max_size=8).map(bytes.hex),
    "scheme": TEXTS,
    "truncated": st.booleans(),
    "arrived_at": TIMES,
    "decided_at": TIMES,
    "stamped_at": st.just(msgspec.UNSET) | TIMES,
    "extracted": st.just(msgspec.UNSET) | st.sampled_from(ExtractionOutcome).map(str),
    "seen_before": st.just(msgspec.UNSET)
    | st.builds(SeenBefore, first=TIMES, last=TIMES, times=st.integers(1, 1 << 62)),
    "parts": st.just(msgspec.UNSET)
    | st.lists(
        st.builds(Part, id=TEXTS, version=VERSIONS, share_of_this=SHARES, share_of_that=SHARES), min_size=1, max_size=5
    ).map(tuple),
}
RELEASES = st.builds(
    Released,
    duplicate_of=TEXTS,
    duplicate_of_version=VERSIONS,
    flagged_at=TIMES,
    by=st.none() | TEXTS,
    reason=st.none() | TEXTS,
)
ENDED = st.builds(EndedBefore, id=TEXTS, version=VERSIONS, ended_at=TIMES, similarity=SIMILARITIES)
FLAGGED = {
    "outcome": st.just("duplicate"),
    "duplicate_of": TEXTS,
    "duplicate_of_version": VERSIONS,
    "distance": DISTANCES,
    "similarity": SIMILARITIES,
    "matches": st.lists(MATCHES, max_size=5).map(tuple),
    "shared_keywords": st.lists(TEXTS, max_size=10).map(tuple),
}
RELEASED = {"outcome": st.just("unique"), "released": RELEASES}
SOURCES = {"source": st.just("") | TEXTS, "original_source": st.just("") | TEXTS}
VERDICTS = st.one_of(
    st.builds(Verdict, outcome=st.just("unique"), ended_before=st.just(msgspec.UNSET) | ENDED, **JUDGED),
    st.builds(Verdict, outcome=st.just("retracted"), id=TEXTS, arrived_at=TIMES, decided_at=TIMES),
    *(st.builds(Verdict, **JUDGED, **kind, **sources) for kind in (FLAGGED, RELEASED) for sources in ({}, SOURCES)),
)


@given(VERDICTS)
def test_a_verdict_read_back_is_the_same(verdict: Verdict) -> None:
    """Decoding reverses encoding, and the bytes are one line that conforms to the schema."""
    data = encode_verdict(verdict)
    assert decode_verdict(data) == verdict
    assert encode_verdict(decode_verdict(data)) == data
    assert b"\n" not in data
    VERDICT.validate(json.loads(data))


def test_the_bytes_of_a_verdict() -> None:
    """Names, order and nulls of an event never change."""
    verdict = Verdict(
        id="a", outcome="retracted", arrived_at="2026-01-31T08:15:30.250Z", decided_at="2026-01-31T08:15:31.000Z"
    )
    assert encode_verdict(verdict) == (
        b'{"schema":"dupwatch.verdict/1","id":"a","version":null,"outcome":"retracted","duplicate_of":null,'
        b'"duplicate_of_version":null,"distance":null,"similarity":null,"cluster":null,"matches":[],'
        b'"shared_keywords":[],"fingerprint":null,"scheme":null,"truncated":false,'
        b'"arrived_at":"2026-01-31T08:15:30.250Z","decided_at":"2026-01-31T08:15:31.000Z"}'
    )


def test_a_flag_names_both_sources() -> None:
    """An article without a source has an empty one. Other verdicts have the same bytes as in earlier versions."""
    record, of = make_record("copy", source="post"), make_record("original", source="")
    near = Neighbour(of, 2, 0.9)
    flag = duplicate_event(Duplicate(record, near, (near,)), truncated=False, decided_ms=TIME_MS).encoded
    assert flag.endswith(b',"source":"post","original_source":""}')
    assert b"source" not in kept_event(record, truncated=False, decided_ms=TIME_MS).encoded
    assert b"source" not in retracted_event("copy", time_ms=TIME_MS, decided_ms=TIME_MS).encoded


def test_a_release_says_what_it_undid() -> None:
    """The version is unique; its former original is in a member that no other event has. The sources stay."""
    record, of = make_record("copy", source="post"), make_record("original", source="wire")
    match = Neighbour(of, 2, 0.9)
    flag = duplicate_event(Duplicate(record, match, (match,)), truncated=False, decided_ms=TIME_MS)
    event = released_event(flag.verdict, by="Kim", reason=None, decided_ms=TIME_MS + 5)
    kept = kept_event(record, truncated=False, decided_ms=TIME_MS + 5).encoded
    version = of.reference[16:].hex()
    assert b"released" not in kept + flag.encoded
    assert event.encoded == kept[:-1] + (
        b',"released":{"duplicate_of":"original","duplicate_of_version":"%b",'
        b'"flagged_at":"2023-11-14T22:13:20.000Z","by":"Kim","reason":null},'
        b'"source":"post","original_source":"wire"}' % version.encode()
    )
    VERDICT.validate(json.loads(event.encoded))
    with pytest.raises(ValueError, match="'copy' is unique: there is no flag"):
        released_event(event.verdict, by=None, reason=None, decided_ms=TIME_MS)


def test_a_release_of_an_earlier_flag_names_no_sources() -> None:
    """A release repeats what its flag says, and adds no source."""
    record, of = make_record("copy", source="post"), make_record("original", source="wire")
    near = Neighbour(of, 2, 0.9)
    flag = duplicate_event(Duplicate(record, near, (near,)), truncated=False, decided_ms=TIME_MS).verdict
    earlier = msgspec.structs.replace(flag, source=msgspec.UNSET, original_source=msgspec.UNSET)
    event = released_event(earlier, by=None, reason=None, decided_ms=TIME_MS)
    assert b"source" not in event.encoded
    VERDICT.validate(json.loads(event.encoded))


def test_the_original_of_a_flag_can_be_read_from_its_event() -> None:
    """Id and version name one reference. What is not a version is refused, and so is a verdict that is not a flag."""
    record, of = make_record("copy"), make_record("original")
    match = Neighbour(of, 2, 0.9)
    flag = duplicate_event(Duplicate(record, match, (match,)), truncated=False, decided_ms=TIME_MS).verdict
    assert (reference_in(flag.id, flag.version), original_of(flag)) == (record.reference, of.reference)
    with pytest.raises(ValueError, match="'00' is not a version"):
        reference_in("copy", "00")
    with pytest.raises(ValueError, match="None is not a version"):
        original_of(kept_event(record, truncated=False, decided_ms=TIME_MS).verdict)


def test_the_schema_has_sources_of_flags_only() -> None:
    """Both or neither, and none in a verdict that is neither a flag nor a release."""
    record = make_record("copy")
    near = Neighbour(make_record("original"), 2, 0.9)
    flag = json.loads(duplicate_event(Duplicate(record, near, (near,)), truncated=False, decided_ms=TIME_MS).encoded)
    kept = json.loads(kept_event(record, truncated=False, decided_ms=TIME_MS).encoded)
    assert not VERDICT.is_valid({name: value for name, value in flag.items() if name != "source"})
    assert not VERDICT.is_valid({name: value for name, value in flag.items() if name != "original_source"})
    assert not VERDICT.is_valid(kept | {"source": "", "original_source": ""})


def test_the_schema_has_releases_of_unique_ones_only() -> None:
    """A duplicate cannot have been released."""
    record = make_record("copy")
    match = Neighbour(make_record("original"), 2, 0.9)
    flag = duplicate_event(Duplicate(record, match, (match,)), truncated=False, decided_ms=TIME_MS)
    event = released_event(flag.verdict, by=None, reason="", decided_ms=TIME_MS)
    released = json.loads(event.encoded)["released"]
    assert VERDICT.is_valid(json.loads(flag.encoded))
    assert not VERDICT.is_valid(json.loads(flag.encoded) | {"released": released})


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"\xff", b"[" * 100_000, b'{"schema":"dupwatch.verdict/2"}', b'{"schema":"dupwatch.verdict/1"}'],
)
def test_what_is_no_verdict_is_a_value_error(data: bytes) -> None:
    """Errors of the library are not raised."""
    with pytest.raises(ValueError, match="verdict event cannot be read"):
        decode_verdict(data)


@given(
    st.binary(max_size=40) | st.text(max_size=20).map(lambda text: text.encode(errors="replace")), st.integers(0, 45)
)
def test_a_dead_letter_has_the_input(data: bytes, raw_bytes_max: int) -> None:
    """The input is included as text, or in base64 where it is not text; size and digest are of the whole."""
    letter = dead_letter(FAULT, PLACE, data, raw_bytes_max=raw_bytes_max)
    plain: dict[str, Any] = json.loads(encode(letter))
    LETTER.validate(plain)
    assert plain["cut"] == (len(data) > raw_bytes_max)
    assert plain["size_bytes"] == len(data)
    assert plain["sha256"] == hashlib.sha256(data).hexdigest()
    if plain["raw"] is None:
        assert base64.b64decode(plain["raw_base64"]) == data[:raw_bytes_max]
    else:
        kept = plain["raw"].encode()
        assert data[:raw_bytes_max].startswith(kept)
        assert len(data[:raw_bytes_max]) - len(kept) <= (3 if plain["cut"] else 0)


def test_text_that_is_cut_within_a_character_stays_text() -> None:
    """The bytes of half a character at the cut are dropped, so that the rest can be read."""
    letter = dead_letter(FAULT, PLACE, ("字" * 40_000).encode())
    assert letter.cut
    assert letter.raw == "字" * (DEAD_LETTER_RAW_BYTES_MAX // 3)
    assert letter.raw_base64 is None


def test_a_letter_of_a_record_that_was_cut_while_reading() -> None:
    """Size and digest of the whole are those that the source computed."""
    letter = dead_letter(FAULT, PLACE, b"abc", size_bytes=10, sha256=b"\x01" * 32)
    assert (letter.raw, letter.size_bytes, letter.sha256, letter.cut) == ("abc", 10, "01" * 32, True)


@pytest.mark.parametrize(
    "record",
    [
        {"id": "a", "body": "x"},
        {"id": 17, "body": None, "title": "t", "source": None, "published_at": 1.5, "more": [1]},
        {"id": "a", "body": "", "published_at": "2026-01-31T08:15:30+08:00"},
        {"id": "", "body": "x"},
        {"id": 1.5, "body": "x"},
        {"id": True, "body": "x"},
        {"id": None, "body": "x"},
        {"body": "x"},
        {"id": "a"},
        {"id": "a", "body": 1},
        {"id": "a", "body": "x\0"},
        {"id": "a", "body": "x", "title": 1},
        {"id": "a", "body": "x", "lang": "x" * 65},
        {"id": "a", "body": "x", "published_at": 1_700_000_000_000},
        {"id": "a", "body": "x", "published_at": "yesterday"},
        {"id": "a", "body": "x", "published_at": "2026-01-31T08:15:30"},
        [],
    ],
)
def test_the_article_schema_agrees_with_decoding(record: object) -> None:
    """What the schema allows is decoded, and what it forbids is rejected."""
    data = msgspec.json.encode(record)
    if ARTICLE.is_valid(record):
        decode(data, FieldMap(), DecodeLimits(), "text")
    else:
        with pytest.raises(BadRecord):
            decode(data, FieldMap(), DecodeLimits(), "text")


def test_the_schema_lists_every_reason() -> None:
    """The schema has exactly the reasons that the code has."""
    content = json.loads((DOCS / "schemas" / "dead-letter.schema.json").read_bytes())
    assert content["properties"]["reason"]["enum"] == list(Reason)


def test_the_documentation_has_an_example_of_every_reason() -> None:
    """Each reason is in the list of the events, and its example, where it has one, is rejected with that reason."""
    items = re.findall(r"^- `(\w+)`: (.*(?:\n  .*)*)$", (DOCS / "use" / "events.md").read_text(), re.MULTILINE)
    assert set(Reason) <= {name for name, _ in items}
    examples = {name: re.search(r":\s+`([\[{].*)`$", text) for name, text in items if name in set(Reason)}
    shown = {name: example[1] for name, example in examples.items() if example}
    assert len(shown) >= 13
    for name, text in shown.items():
        with pytest.raises(BadRecord) as caught:
            decode(text.encode(), FieldMap(), DecodeLimits(), "text")
        assert caught.value.reason == name
