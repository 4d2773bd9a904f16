"""That the checks of a chaos would see what they are there for."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest

from consumer.verdict import Verdict, decode_verdict, encode
from storage.records import id_hash
from tests.chaos.kafka import answers
from tests.chaos.kafka.answers import Answers
from tests.chaos.kafka.known_feed import Made
from tests.kafka.topics import Seen

AT = "2026-01-01T00:00:00.000Z"
DIGEST = bytes(16).hex()
FIRST, COPY, AGAIN, OTHER, GONE, POISON = ((0, number) for number in range(6))


def event(name: str, duplicate_of: str | None = None, **fields: Any) -> bytes:  # noqa: ANN401  # of any field
    """What is said of an article."""
    outcome = "unique" if duplicate_of is None else "duplicate"
    version = None if duplicate_of is None else DIGEST
    said: dict[str, Any] = {"outcome": outcome, "version": DIGEST, "duplicate_of_version": version} | fields
    return encode(Verdict(id=name, duplicate_of=duplicate_of, arrived_at=AT, decided_at=AT, **said))


def whole() -> dict[str, Any]:
    """Answers in which nothing is wrong: a group of two, one of which came twice, another, a retraction, poison."""
    made = {
        FIRST: Made(b"first", b"1", 1, "text"),
        COPY: Made(b"copy", b"2", 1, "text"),
        AGAIN: Made(b"copy", b"2", 1, "text"),
        OTHER: Made(b"other", b"3", 2, "another"),
        GONE: Made(b"gone", None),
        POISON: Made(None, b"{", poison=True),
    }
    copy = event("copy", "first")
    return {
        "made": made,
        "verdicts": {
            FIRST: [event("first")],
            COPY: [copy],
            AGAIN: [copy],
            OTHER: [event("other")],
            GONE: [event("gone", outcome="retracted", version=None)],
        },
        "letters": {POISON: [Seen(0, 0, None, b"{", [], 0)]},
        "flags": {COPY: [copy], AGAIN: [copy]},
    }


def check(parts: Mapping[str, Any], *, once: bool = False) -> None:
    """All the checks but those of a store."""
    found = Answers(**parts)
    answers._check_answered(found)
    if once:
        answers._check_once(found)
    said = answers._check_equal(found)
    answers._check_groups(found, {reference: decode_verdict(one) for reference, one in said.items()})


@pytest.mark.parametrize("once", [False, True])
def test_answers_that_are_whole_pass(*, once: bool) -> None:
    """Also those in which one content stands twice."""
    check(whole(), once=once)


def copies_say(parts: dict[str, Any], said: bytes, *, flagged: bool = True) -> None:
    """Something else is said of the copy, both times."""
    for origin in (COPY, AGAIN):
        parts["verdicts"][origin] = [said]
        if flagged:
            parts["flags"][origin] = [said]
        else:
            del parts["flags"][origin]


WRONG: Mapping[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a message has no verdict": (lambda parts: parts["verdicts"].pop(OTHER), "have no verdict"),
    "poison has no letter": (lambda parts: parts["letters"].pop(POISON), "are not the same"),
    "an article is a dead letter": (lambda parts: parts["letters"].update({FIRST: []}), "are not the same"),
    "poison has a verdict": (lambda parts: parts["verdicts"].update({POISON: [event("p")]}), "no articles"),
    "a letter is not as it came": (
        lambda parts: parts["letters"].update({POISON: [Seen(0, 0, None, b"", [], 0)]}),
        "as it came",
    ),
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


@pytest.mark.parametrize("part", ["verdicts", "flags", "letters"])
def test_what_was_said_twice_is_seen_where_that_must_not_be(part: str) -> None:
    """With at least once it may."""
    parts = whole()
    for said in parts[part].values():
        said.append(said[0])
    check(parts)
    with pytest.raises(AssertionError, match="more than one"):
        check(parts, once=True)


def test_a_chain_that_goes_round_is_seen() -> None:
    """It ends all the same."""
    circle = {"a": decode_verdict(event("a", "b")), "b": decode_verdict(event("b", "a"))}
    verdicts = {id_hash(name) + bytes.fromhex(DIGEST): verdict for name, verdict in circle.items()}
    with pytest.raises(AssertionError, match="in a circle"):
        list(answers._chain(next(iter(verdicts)), verdicts))
