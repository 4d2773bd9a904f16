"""What must hold when all is over, seen from outside: in the topics, and in the store."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from consumer.config.loading import load_config
from consumer.judge.events import reference_in
from consumer.model.verdict import Verdict, decode_verdict
from consumer.store_tools.inspection import VerificationReport, verify
from consumer.wiring.components import lexicon_of
from consumer.wiring.stores import opened_store, stored_binding
from storage.records import Tombstone
from tests.chaos.kafka.feed_message import FeedMessage
from tests.chaos.kafka.hostile_values import RECORD_BYTES_MAX
from tests.chaos.kafka.reading_back import NO_TIME_MS, Found, brief, read_topic
from tests.chaos.kafka.sending import NUMBER
from tests.kafka.topics import Topics

Origin = tuple[int, int]
"""Partition and offset of a message of the source."""

_VERDICT: Final = ("dupwatch-origin-partition", "dupwatch-origin-offset")
_LETTER: Final = ("__connect.errors.partition", "__connect.errors.offset")
_REASON: Final = "dupwatch-reason"
TIME_HEADER: Final = "dupwatch-timestamp-ms"
_SCHEMA: Final = b"dupwatch-schema"
_CUT_BYTES: Final = 64 << 10
"""How much a dead letter keeps of a record over the limit."""
UNDECIDED_S: Final = 60.0
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
    """The messages of the source by origin, the answers to each, and their timestamps."""

    messages: Mapping[Origin, FeedMessage]
    verdicts: Mapping[Origin, Sequence[bytes]]
    letters: Mapping[Origin, Sequence[Found]]
    flags: Mapping[Origin, Sequence[bytes]]
    times_ms: Mapping[Origin, int]

    def complete(self) -> bool:
        """Whether something was said of every message."""
        return self.messages.keys() == self.verdicts.keys() | self.letters.keys()


def check(answers: Answers, store_url: str, *, once: bool) -> Counts:
    """Check everything that is promised; ``once`` that nothing was said twice."""
    _check_answered(answers)
    if once:
        _check_once(answers)
    settled = _check_equal(answers)
    verdicts = {reference: decode_verdict(event) for reference, event in settled.items()}
    _check_groups(answers, verdicts)
    findings = _check_store(store_url, answers, settled)
    events = sum(map(len, answers.verdicts.values())) + sum(map(len, answers.letters.values()))
    return Counts(
        messages=len(answers.messages),
        verdicts=len(answers.verdicts),
        letters=len(answers.letters),
        repeated=events - len(answers.messages),
        kept=findings.kept,
        duplicates=findings.duplicates,
    )


def read_answers(topics: Topics, messages: Sequence[FeedMessage]) -> Answers:
    """Read all topics but the clean feed, waiting for open transactions."""
    sent, times_ms = _read_source(topics, messages)
    until_s = time.monotonic() + UNDECIDED_S
    while True:
        answers = Answers(
            sent,
            _values(read_topic(topics, topics.sink("verdicts")), _VERDICT),
            _by_origin(read_topic(topics, topics.sink("dead-letters")), _LETTER),
            _values(read_topic(topics, topics.sink("duplicates")), _VERDICT),
            times_ms,
        )
        if answers.complete() or time.monotonic() > until_s:
            return answers
        time.sleep(1)


def _read_source(
    topics: Topics, messages: Sequence[FeedMessage]
) -> tuple[dict[Origin, FeedMessage], dict[Origin, int]]:
    """Its committed messages and their times: everything that was sent except aborted transactions."""
    by_key = {message.key: number for number, message in enumerate(messages) if message.way.raw}
    sent: dict[Origin, FeedMessage] = {}
    times_ms: dict[Origin, int] = {}
    seen: Counter[int] = Counter()
    for found in read_topic(topics, topics.source):
        number = by_key[found.key] if found.headers is None else int(dict(found.headers)[NUMBER] or b"")
        seen[number] += 1
        message = messages[number]
        assert (found.key, found.value) == (message.key, message.value), f"message {number} is not what was sent"
        sent[found.partition, found.offset] = message
        times_ms[found.partition, found.offset] = found.timestamp_ms
    sent_numbers = {number for number, message in enumerate(messages) if not message.aborted}
    missing, unexpected = sent_numbers - seen.keys(), seen.keys() - sent_numbers
    assert not missing, f"messages are not in the source: {_described(missing, messages)}"
    assert not unexpected, f"messages of aborted transactions are in the source: {_described(unexpected, messages)}"
    again = [
        number
        for number, times in seen.items()
        if times > 1 and not (messages[number].way.raw or messages[number].way.transaction)
    ]
    assert not again, f"messages are in the source twice: {again[:5]}"
    return sent, times_ms


def _described(numbers: Iterable[int], messages: Sequence[FeedMessage]) -> list[str]:
    """The first of these messages, for a failure."""
    chosen = [(number, messages[number]) for number in sorted(numbers)[:10]]
    return [f"{number} {message.key!r:.40} {message.case!r} {message.way!r:.150}" for number, message in chosen]


def _values(found: Iterable[Found], names: tuple[str, str]) -> dict[Origin, list[bytes]]:
    return {
        origin: [found.value or b"" for found in all_] for origin, all_ in _by_origin(found, names, whole=True).items()
    }


def _by_origin(found: Iterable[Found], names: tuple[str, str], *, whole: bool = False) -> dict[Origin, list[Found]]:
    answers: defaultdict[Origin, list[Found]] = defaultdict(list)
    for message in found:
        assert message.headers is not None, "dupwatch has sent a header that cannot be read"
        headers = dict(message.headers)
        partition, offset = (int(headers[name] or b"") for name in names)
        answers[partition, offset].append(message if whole else message._replace(value=brief(message.value)))
    return dict(answers)


def _check_answered(answers: Answers) -> None:
    """Each message has one kind of answer, of those it may get; a dead letter is the record as it came."""
    answered = answers.verdicts.keys() | answers.letters.keys()
    missing = sorted(answers.messages.keys() - answered)
    assert not missing, f"{len(missing)} messages have no answer: {_named(answers, missing)}"
    strange = sorted(answered - answers.messages.keys())
    assert not strange, f"there are answers to what nobody has sent, or what was aborted: {strange[:5]}"
    both = sorted(answers.verdicts.keys() & answers.letters.keys())
    assert not both, f"{len(both)} messages have a verdict and a dead letter: {_named(answers, both)}"
    judged = [origin for origin in answers.verdicts if not answers.messages[origin].expected.verdict]
    assert not judged, f"{len(judged)} messages have verdicts and are no articles: {_named(answers, judged)}"
    refused = [origin for origin in answers.letters if not answers.messages[origin].expected.letter]
    assert not refused, f"{len(refused)} articles are dead letters: {_named(answers, refused)}"
    for origin, letters in answers.letters.items():
        for letter in letters:
            _check_letter(origin, answers.messages[origin], letter, answers.times_ms[origin])


def _named(answers: Answers, origins: Sequence[Origin]) -> str:
    """The first five of them, with their cases and the reasons of their dead letters."""
    lines = []
    for origin in origins[:5]:
        message = answers.messages[origin]
        reasons = {dict(letter.headers or ()).get(_REASON) for letter in answers.letters.get(origin, ())}
        lines.append(
            f"{origin} {message.case or 'of the known feed'}: {message.key!r:.60} {message.value!r:.200} {reasons}"
        )
    return "\n".join(lines)


def _check_letter(origin: Origin, message: FeedMessage, found: Found, time_ms: int) -> None:
    """Its reason is one of those expected; key, value, headers and time are those of the record."""
    assert found.headers is not None
    headers, where = dict(found.headers), f"{origin} ({message.case})"
    reason = (headers[_REASON] or b"").decode()
    assert message.expected.reasons is None or reason in message.expected.reasons, (
        f"{where} is a dead letter for {reason}"
    )
    value = message.value
    if value is not None and len(value) > RECORD_BYTES_MAX:
        value = value[:_CUT_BYTES]
    assert (found.key, found.value) == (message.key, brief(value)), f"{where} is not as it came: {found.key!r:.80}"
    assert time_ms == NO_TIME_MS or headers[TIME_HEADER] == b"%d" % time_ms, f"{where} has lost its time, {time_ms}"
    own = message.way.headers
    if any(name == _SCHEMA for name, _ in own):
        # It claims to be a dead letter already, so what it says of that is replaced.
        return
    kept = found.headers[1 : len(own) + 1]
    assert [value for _, value in kept] == [value for _, value in own], f"{where} has other headers than it came with"
    if not message.way.raw:
        assert [name.encode() for name, _ in kept] == [name for name, _ in own], f"{where} has other headers"


def _check_once(answers: Answers) -> None:
    for what, by_origin in (("verdict", answers.verdicts), ("flag", answers.flags), ("dead letter", answers.letters)):
        repeated = {origin: len(all_) for origin, all_ in by_origin.items() if len(all_) > 1}
        assert not repeated, f"messages have more than one {what}: {dict(list(repeated.items())[:5])}"


def _check_equal(answers: Answers) -> dict[bytes, bytes]:
    """All events of a message and of a version are equal, and its flags are those events; the event of each version."""
    of_stretch: defaultdict[tuple[bytes | None, object], set[bytes]] = defaultdict(set)
    for origin, events in answers.verdicts.items():
        message = answers.messages[origin]
        # Content that returns is another version. A retraction has none: it is another one wherever it stands.
        version = origin if _retracted(events) else decode_verdict(events[0]).version
        of_stretch[message.key, version].update(events)
    unlike = {stretch: events for stretch, events in of_stretch.items() if len(events) > 1}
    assert not unlike, f"{len(unlike)} versions have events that differ: {list(unlike.items())[:2]}"
    for origin, events in answers.verdicts.items():
        expected = set(events) if decode_verdict(events[0]).outcome == "duplicate" else set()
        assert set(answers.flags.get(origin, ())) == expected, f"{origin} is not flagged as its verdict says"
    assert answers.flags.keys() <= answers.verdicts.keys(), "something is flagged that has no verdict"
    of_version = {}
    for (event,) in of_stretch.values():
        verdict = decode_verdict(event)
        assert not verdict.truncated, f"the search for what {verdict.id} repeats was cut"
        if verdict.version is not None:
            of_version[reference_in(verdict.id, verdict.version)] = event
    return of_version


def _retracted(events: Sequence[bytes]) -> bool:
    return decode_verdict(events[0]).outcome == "retracted"


def _check_groups(answers: Answers, verdicts: Mapping[bytes, Verdict]) -> None:
    """What the feed knows: of equal texts at most one is kept, of a group one at least, and chains stay within it."""
    group_of: dict[bytes, int] = {}
    kept_texts: defaultdict[str | None, set[bytes]] = defaultdict(set)
    kept_groups: set[int] = set()
    for origin, message in answers.messages.items():
        if message.group is None:
            continue
        verdict = decode_verdict(answers.verdicts[origin][0])
        reference = reference_in(verdict.id, verdict.version)
        group_of[reference] = message.group
        if verdict.outcome == "unique":
            kept_texts[message.text].add(reference)
            kept_groups.add(message.group)
    both = [verdicts[reference].id for kept in kept_texts.values() if len(kept) > 1 for reference in kept]
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


def _check_store(url: str, answers: Answers, events: Mapping[bytes, bytes]) -> VerificationReport:
    """The store holds what was said, of everything, and no two near ones are both kept."""
    retractions = {events[0] for events in answers.verdicts.values() if _retracted(events)}
    config = load_config(None, {"store": {"url": url}})
    with opened_store(config, readonly=True) as store:
        stored: dict[bytes, bytes | None] = {}
        tombstones = set()
        for entry in store.scan():
            if isinstance(entry, Tombstone):
                tombstones.add(entry.event)
            else:
                stored[entry.record.reference] = entry.verdict
        unlike = [
            reference for reference in stored.keys() | events.keys() if stored.get(reference) != events.get(reference)
        ]
        assert not unlike, f"of {len(unlike)} versions what is stored is not what was said"
        assert tombstones == retractions, "the retractions that are stored are not those that were said"
        *_, findings = verify(store, stored_binding(store, lexicon_of(config)).settings)
    assert not findings.wrong, f"{len(findings.wrong)} things are wrong in the store: {findings.wrong[:5]}"
    assert not findings.pending, f"{findings.pending} versions are pending"
    return findings
