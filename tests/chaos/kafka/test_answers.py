"""That the checks of a chaos would see what they are there for."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import pytest

from consumer.model.verdict import Verdict, decode_verdict, encode
from storage.records import id_hash
from tests.chaos.kafka import answers
from tests.chaos.kafka import feed_message as kinds
from tests.chaos.kafka.answers import Answers
from tests.chaos.kafka.clean_feed import Content, check_records
from tests.chaos.kafka.feed_message import FeedMessage
from tests.chaos.kafka.reading_back import Found

AT = "2026-01-01T00:00:00.000Z"
DIGEST = bytes(16).hex()
FIRST, COPY, AGAIN, OTHER, GONE, POISON = ((0, number) for number in range(6))
NUMBER = ("number", b"5")


def event(name: str, duplicate_of: str | None = None, **fields: Any) -> bytes:  # noqa: ANN401  # of any field
    """An event about an article."""
    outcome = "unique" if duplicate_of is None else "duplicate"
    version = None if duplicate_of is None else DIGEST
    event: dict[str, Any] = {"outcome": outcome, "version": DIGEST, "duplicate_of_version": version} | fields
    return encode(Verdict(id=name, duplicate_of=duplicate_of, arrived_at=AT, decided_at=AT, **event))


def found(value: bytes, *own: tuple[str, bytes | None], reason: bytes = b"invalid_json", time: bytes = b"5") -> Found:
    """A dead letter of the poison."""
    return Found(0, 0, None, value, (*own, ("dupwatch-reason", reason), ("dupwatch-timestamp-ms", time)), 7)


def with_letter(letter: Found) -> Callable[[dict[str, Any]], object]:
    """Makes it the dead letter of the poison."""
    return lambda parts: parts["letters"].update({POISON: [letter]})


def whole() -> dict[str, Any]:
    """Answers in which nothing is wrong: a group of two, one of which came twice, another, a retraction, poison."""
    messages = {
        FIRST: FeedMessage(b"first", b"1", 1, "text"),
        COPY: FeedMessage(b"copy", b"2", 1, "text"),
        AGAIN: FeedMessage(b"copy", b"2", 1, "text"),
        OTHER: FeedMessage(b"other", b"3", 2, "another"),
        GONE: FeedMessage(b"gone", None),
        POISON: FeedMessage(None, b"{", expected=kinds.letter("invalid_json"), way=kinds.Way(((b"a", None),))),
    }
    copy = event("copy", "first")
    return {
        "messages": messages,
        "verdicts": {
            FIRST: [event("first")],
            COPY: [copy],
            AGAIN: [copy],
            OTHER: [event("other")],
            GONE: [event("gone", outcome="retracted", version=None)],
        },
        "letters": {POISON: [found(b"{", NUMBER, ("a", None))]},
        "flags": {COPY: [copy], AGAIN: [copy]},
        "times_ms": dict.fromkeys(messages, 5),
    }


def check(parts: Mapping[str, Any], *, once: bool = False) -> None:
    """All the checks but those of a store."""
    found = Answers(**parts)
    answers._check_answered(found)
    if once:
        answers._check_once(found)
    verdicts = answers._check_equal(found)
    answers._check_groups(found, {reference: decode_verdict(event) for reference, event in verdicts.items()})


@pytest.mark.parametrize("once", [False, True])
def test_answers_that_are_whole_pass(*, once: bool) -> None:
    """Also those in which one content stands twice."""
    check(whole(), once=once)


def copies_say(parts: dict[str, Any], event: bytes, *, flagged: bool = True) -> None:
    """Replace the events of the copy, both times."""
    for origin in (COPY, AGAIN):
        parts["verdicts"][origin] = [event]
        if flagged:
            parts["flags"][origin] = [event]
        else:
            del parts["flags"][origin]


WRONG: Mapping[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a message has no answer": (lambda parts: parts["verdicts"].pop(OTHER), "have no answer"),
    "poison has no letter": (lambda parts: parts["letters"].pop(POISON), "have no answer"),
    "a message has both": (lambda parts: parts["letters"].update({FIRST: []}), "a verdict and a dead letter"),
    "an article is a dead letter": (
        lambda parts: (parts["verdicts"].pop(FIRST), parts["letters"].update({FIRST: []})),
        "articles are dead letters",
    ),
    "poison has a verdict": (
        lambda parts: (parts["letters"].pop(POISON), parts["verdicts"].update({POISON: [event("p")]})),
        "no articles",
    ),
    "what was aborted has a verdict": (lambda parts: parts["messages"].pop(OTHER), "aborted"),
    "what was aborted has a letter": (lambda parts: parts["messages"].pop(POISON), "aborted"),
    **{
        f"a letter has {what}": (with_letter(letter), words)
        for what, letter, words in (
            ("another value", found(b"", NUMBER, ("a", None)), "as it came"),
            ("another reason", found(b"{", NUMBER, ("a", None), reason=b"missing_id"), "for missing_id"),
            ("another time", found(b"{", NUMBER, ("a", None), time=b"6"), "lost its time"),
            ("another value of a header", found(b"{", NUMBER, ("a", b"")), "other headers"),
            ("another name of a header", found(b"{", NUMBER, ("b", None)), "other headers"),
            ("a header less", found(b"{", NUMBER), "other headers"),
        )
    },
    "a delivery says something else": (
        lambda parts: parts["verdicts"][FIRST].append(event("first", distance=1)),
        "events that differ",
    ),
    "the same content has another verdict": (
        lambda parts: parts["verdicts"].update({AGAIN: [event("copy", "first", distance=1)]}),
        "events that differ",
    ),
    "a flag is missing": (lambda parts: parts["flags"].pop(AGAIN), "is not flagged"),
    "a kept one is flagged": (lambda parts: parts["flags"].update({FIRST: [event("first")]}), "is not flagged"),
    "both are kept": (lambda parts: copies_say(parts, event("copy"), flagged=False), "both kept"),
    "none is kept": (
        lambda parts: (
            parts["verdicts"].update({FIRST: [event("first", "copy")]}),
            parts["flags"].update({FIRST: [event("first", "copy")]}),
        ),
        "nothing is kept",
    ),
    "it repeats what is of another group": (lambda parts: copies_say(parts, event("copy", "other")), "in common"),
    "it repeats what is not there": (lambda parts: copies_say(parts, event("copy", "nothing")), "nothing was said"),
    "a search was cut": (lambda parts: parts["verdicts"].update({OTHER: [event("other", truncated=True)]}), "was cut"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_seen(what: str) -> None:
    """One thing at a time."""
    break_it, words = WRONG[what]
    parts = deepcopy(whole())
    break_it(parts)
    with pytest.raises(AssertionError, match=words):
        check(parts)


def test_either_answer_is_taken_where_limits_decide() -> None:
    """One of them, whatever the reason."""
    parts = whole()
    for origin in (OTHER, POISON):
        parts["messages"][origin] = parts["messages"][origin]._replace(expected=kinds.EITHER)
    check(parts)
    parts["letters"][OTHER] = parts["letters"][POISON]
    with pytest.raises(AssertionError, match="a verdict and a dead letter"):
        check(parts)


@pytest.mark.parametrize("part", ["verdicts", "flags", "letters"])
def test_what_was_said_twice_is_seen_where_that_must_not_be(part: str) -> None:
    """With at least once it may."""
    parts = whole()
    for events in parts[part].values():
        events.append(events[0])
    check(parts)
    with pytest.raises(AssertionError, match="more than one"):
        check(parts, once=True)


def test_a_chain_that_goes_round_is_seen() -> None:
    """It ends all the same."""
    circle = {"a": decode_verdict(event("a", "b")), "b": decode_verdict(event("b", "a"))}
    verdicts = {id_hash(name) + bytes.fromhex(DIGEST): verdict for name, verdict in circle.items()}
    with pytest.raises(AssertionError, match="in a circle"):
        list(answers._chain(next(iter(verdicts)), verdicts))


def in_the_clean_feed(**changed: Any) -> Found:  # noqa: ANN401  # of any field
    """A record there, of an article that came at 5."""
    return Found(0, 0, b"a", b"1", (), 5)._replace(**changed)


MOVED = (("dupwatch-timestamp-ms", b"x"), ("dupwatch-timestamp-ms", b"5"))
CLEAN: Mapping[str, tuple[list[Found], bool, str]] = {
    "it is as it came": ([in_the_clean_feed()], True, ""),
    "its time is in a header": ([in_the_clean_feed(timestamp_ms=7, headers=MOVED)], True, ""),
    "it is there again": ([in_the_clean_feed()] * 2, False, ""),
    "it is there twice": ([in_the_clean_feed()] * 2, True, "more than once"),
    "it is missing": ([], False, "lacks"),
    "it is another": ([in_the_clean_feed(), in_the_clean_feed(value=b"2")], False, "was not kept"),
    "its time is lost": ([in_the_clean_feed(timestamp_ms=7)], False, "came at"),
}


@pytest.mark.parametrize("what", CLEAN)
def test_the_clean_feed_has_what_was_kept(what: str) -> None:
    """Each record as it came, with its time where the topic takes it."""
    records, once, words = CLEAN[what]
    kept: Counter[Content] = Counter([(b"a", b"1")])
    times_ms: dict[Content, set[int]] = {(b"a", b"1"): {5}}
    with pytest.raises(AssertionError, match=words) if words else nullcontext():
        check_records(kept, times_ms, records, once=once)
