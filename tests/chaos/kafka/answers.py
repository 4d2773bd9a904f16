"""What must hold when all is over, seen from outside: in the topics, and in the store."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from consumer.app import lexicon_of, opened_store, stored_settings
from consumer.config import load_config
from consumer.inspection import Findings, reference_in, verify
from consumer.verdict import Verdict, decode_verdict
from storage.records import Tombstone
from tests.chaos.kafka.feeding import NUMBER
from tests.chaos.kafka.known_feed import Made
from tests.kafka.topics import Seen, Topics, read_all

Origin = tuple[int, int]
"""Partition and offset of a message of the source."""

_VERDICT: Final = ("dupwatch-origin-partition", "dupwatch-origin-offset")
_LETTER: Final = ("__connect.errors.partition", "__connect.errors.offset")
_UNDECIDED_S: Final = 60.0
"""How long what a killed producer left open hides what is behind it: its timeout, and the broker's interval."""


class Counts(NamedTuple):
    """What there was."""

    messages: int
    verdicts: int
    letters: int
    repeated: int
    kept: int
    duplicates: int


@dataclass(frozen=True, slots=True)
class Answers:
    """The source's messages by where they stand, and what was said of each."""

    made: Mapping[Origin, Made]
    verdicts: Mapping[Origin, Sequence[bytes]]
    letters: Mapping[Origin, Sequence[Seen]]
    flags: Mapping[Origin, Sequence[bytes]]

    def complete(self) -> bool:
        """Whether something was said of every message."""
        return self.made.keys() == self.verdicts.keys() | self.letters.keys()


def check(topics: Topics, made: Sequence[Made], store_url: str, *, once: bool) -> Counts:
    """Check everything that is promised; ``once`` that nothing was said twice."""
    answers = _read(topics, made)
    _check_answered(answers)
    if once:
        _check_once(answers)
    said = _check_equal(answers)
    verdicts = {reference: decode_verdict(event) for reference, event in said.items()}
    _check_groups(answers, verdicts)
    findings = _check_store(store_url, answers, said)
    events = sum(map(len, answers.verdicts.values())) + sum(map(len, answers.letters.values()))
    return Counts(
        messages=len(made),
        verdicts=len(answers.verdicts),
        letters=len(answers.letters),
        repeated=events - len(made),
        kept=findings.kept,
        duplicates=findings.duplicates,
    )


def _read(topics: Topics, made: Sequence[Made]) -> Answers:
    source = read_all(topics, topics.source)
    numbers = [int(dict(one.headers)[NUMBER] or b"") for one in source]
    assert sorted(numbers) == list(range(len(made))), "the source is not what was sent"
    sent = {(one.partition, one.offset): made[number] for one, number in zip(source, numbers, strict=True)}
    until_s = time.monotonic() + _UNDECIDED_S
    while True:
        answers = Answers(
            sent,
            _values(read_all(topics, topics.sink("verdicts")), _VERDICT),
            _by_origin(read_all(topics, topics.sink("dead-letters")), _LETTER),
            _values(read_all(topics, topics.sink("duplicates")), _VERDICT),
        )
        if answers.complete() or time.monotonic() > until_s:
            return answers
        time.sleep(1)


def _values(seen: Sequence[Seen], names: tuple[str, str]) -> dict[Origin, list[bytes]]:
    return {origin: [one.value or b"" for one in all_] for origin, all_ in _by_origin(seen, names).items()}


def _by_origin(seen: Sequence[Seen], names: tuple[str, str]) -> dict[Origin, list[Seen]]:
    found: defaultdict[Origin, list[Seen]] = defaultdict(list)
    for one in seen:
        headers = dict(one.headers)
        partition, offset = (int(headers[name] or b"") for name in names)
        found[partition, offset].append(one)
    return dict(found)


def _check_answered(answers: Answers) -> None:
    """Input = verdicts + dead letters, and each letter is the record as it came."""
    articles = {origin for origin, made in answers.made.items() if not made.poison}
    poison = answers.made.keys() - articles
    missing = sorted(articles - answers.verdicts.keys())
    assert not missing, f"{len(missing)} messages have no verdict, the first ones {missing[:5]}"
    assert not answers.verdicts.keys() - articles, "there are verdicts of messages that are no articles"
    assert answers.letters.keys() == poison, "dead letters and poison are not the same"
    for origin, letters in answers.letters.items():
        made = answers.made[origin]
        assert {(one.key, one.value) for one in letters} == {(made.key, made.value)}, f"{origin} is not as it came"


def _check_once(answers: Answers) -> None:
    for what, said in (("verdict", answers.verdicts), ("flag", answers.flags), ("dead letter", answers.letters)):
        repeated = {origin: len(all_) for origin, all_ in said.items() if len(all_) > 1}
        assert not repeated, f"messages have more than one {what}: {dict(list(repeated.items())[:5])}"


def _check_equal(answers: Answers) -> dict[bytes, bytes]:
    """All events of a version are equal, and its flags are those events; the event of each version."""
    of_content: defaultdict[tuple[bytes | None, object], set[bytes]] = defaultdict(set)
    for origin, events in answers.verdicts.items():
        made = answers.made[origin]
        # A retraction has no content: it is another one wherever it stands.
        of_content[made.key, origin if made.value is None else made.value].update(events)
    unlike = {content: events for content, events in of_content.items() if len(events) > 1}
    assert not unlike, f"{len(unlike)} versions have events that differ: {list(unlike.items())[:2]}"
    for origin, events in answers.verdicts.items():
        expected = set(events) if decode_verdict(events[0]).outcome == "duplicate" else set()
        assert set(answers.flags.get(origin, ())) == expected, f"{origin} is not flagged as its verdict says"
    assert answers.flags.keys() <= answers.verdicts.keys(), "something is flagged that has no verdict"
    said = {}
    for (event,) in of_content.values():
        verdict = decode_verdict(event)
        assert not verdict.truncated, f"the search for what {verdict.id} repeats was cut"
        if verdict.version is not None:
            said[reference_in(verdict.id, verdict.version)] = event
    return said


def _check_groups(answers: Answers, verdicts: Mapping[bytes, Verdict]) -> None:
    """What the feed knows: of equal texts at most one is kept, of a group one at least, and chains stay within it."""
    group_of: dict[bytes, int] = {}
    kept_texts: defaultdict[str | None, set[bytes]] = defaultdict(set)
    kept_groups: set[int] = set()
    for origin, made in answers.made.items():
        if made.group is None:
            continue
        verdict = decode_verdict(answers.verdicts[origin][0])
        reference = reference_in(verdict.id, verdict.version)
        group_of[reference] = made.group
        if verdict.outcome == "unique":
            kept_texts[made.text].add(reference)
            kept_groups.add(made.group)
    both = [verdicts[one].id for kept in kept_texts.values() if len(kept) > 1 for one in kept]
    assert not both, f"articles of the same text are both kept: {both[:6]}"
    assert kept_groups == set(group_of.values()), "of some group nothing is kept"
    for reference, verdict in verdicts.items():
        last = list(_chain(reference, verdicts))[-1]
        assert group_of.get(last) == group_of.get(reference), f"{verdict.id} repeats what it has nothing in common with"


def _chain(reference: bytes, verdicts: Mapping[bytes, Verdict]) -> Iterator[bytes]:
    """The version and what it goes back to, which has to end at one that is kept."""
    for _ in range(len(verdicts)):
        yield reference
        verdict = verdicts[reference]
        if verdict.outcome == "unique":
            return
        assert verdict.duplicate_of is not None, f"{verdict.id} is a duplicate of nothing"
        reference = reference_in(verdict.duplicate_of, verdict.duplicate_of_version)
        assert reference in verdicts, f"{verdict.id} repeats something of which nothing was said"
    raise AssertionError("a chain goes round in a circle")


def _check_store(url: str, answers: Answers, said: Mapping[bytes, bytes]) -> Findings:
    """The store holds what was said, of everything, and no two near ones are both kept."""
    retractions = {events[0] for origin, events in answers.verdicts.items() if answers.made[origin].value is None}
    config = load_config(None, {"store": {"url": url}})
    with opened_store(config, readonly=True) as store:
        stored: dict[bytes, bytes | None] = {}
        tombstones = set()
        for one in store.scan():
            if isinstance(one, Tombstone):
                tombstones.add(one.event)
            else:
                stored[one.record.reference] = one.verdict
        unlike = [
            reference for reference in stored.keys() | said.keys() if stored.get(reference) != said.get(reference)
        ]
        assert not unlike, f"of {len(unlike)} versions what is stored is not what was said"
        assert tombstones == retractions, "the retractions that are stored are not those that were said"
        *_, findings = verify(store, stored_settings(store, lexicon_of(config)))
    assert not findings.wrong, f"{len(findings.wrong)} things are wrong in the store: {findings.wrong[:5]}"
    assert not findings.pending, f"{findings.pending} versions are pending"
    return findings
