"""Which earlier articles a verdict names for a part of this one."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Final

import msgspec
import pytest
from typing_extensions import override

from consumer.config.loading import load_config
from consumer.fingerprint import Engine, Lexicon
from consumer.judge import part_search
from consumer.judge.binding import Binding
from consumer.judge.common_hashes import COMMON_FROM, CommonHashes
from consumer.judge.detector import Detector
from consumer.judge.part_search import ROW_POSTINGS_MAX, PartCandidate
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.migration.adopting import AdoptingJudge
from consumer.model.article import Article
from consumer.model.verdict import Verdict
from consumer.wiring.components import engine, judge_settings, lexicon_of, version_builder
from storage.clock import MS_PER_DAY
from storage.interface import Store
from storage.memory import MemoryStore
from storage.postings import LANE_PARTS, PostingRow, all_keys, lane_of, part_keys, postings_of
from storage.records import Tombstone, Version
from storage.watched import Result, StoreCall, WatchedStore
from tests.builders import TIME_MS, make_tombstone

WORDS: Final = (
    "ferry",
    "harbour",
    "morning",
    "ticket",
    "captain",
    "winter",
    "market",
    "bridge",
    "school",
    "garden",
    "letter",
    "doctor",
    "station",
    "music",
    "river",
    "mountain",
    "kitchen",
    "window",
    "teacher",
    "summer",
    "forest",
    "engine",
    "paper",
    "village",
    "island",
    "concert",
    "library",
    "museum",
    "weather",
    "council",
    "election",
    "budget",
    "hospital",
    "traffic",
    "festival",
    "factory",
    "orchard",
    "railway",
    "theatre",
    "newspaper",
)


class Parts:
    """A judge that looks for parts, and the articles that it is given: each arrives a second after the one before."""

    def __init__(self, store: Store | None = None, *, parts: bool = True, common: CommonHashes | None = None) -> None:
        self.store = MemoryStore() if store is None else store
        self.settings, self.engine, self.builder = _built(parts)
        found = (common or CommonHashes()) if parts else None
        self.detector = Detector(self.store, self.settings, lambda: TIME_MS, common=found)
        self._arrived = 0

    def version(self, article_id: str, body: str, at_ms: int | None = None) -> Version:
        """Return the version of an article that arrives next, or at that time."""
        self._arrived += 1
        arrived_at = ArrivalTime(TIME_MS + 1_000 * self._arrived if at_ms is None else at_ms, self._arrived)
        return self.builder.versions([Article(article_id, body)], [arrived_at], self.engine.fingerprint([body]))[0]

    def judge(self, *versions: Version | Tombstone) -> list[Verdict]:
        """Judge a batch."""
        return [event.verdict for event in self.detector.judge(versions)]

    def verdict(self, article_id: str, body: str, at_ms: int | None = None) -> Verdict:
        """Judge an article alone."""
        return self.judge(self.version(article_id, body, at_ms))[0]


@cache
def _built(parts: bool) -> tuple[JudgeSettings, Engine, VersionBuilder]:  # noqa: FBT001  # a cache takes no keywords
    config = load_config(None, {"judge": {"parts": parts}})
    lexicon: Lexicon = lexicon_of(config)
    settings = judge_settings(config, lexicon)
    return settings, engine(config, Binding(settings), lexicon), version_builder(Binding(settings))


def text(seed: int, words: int = 150) -> str:
    """Return some 1,000 characters of English that share nothing with those of another seed."""
    random = Random(seed)  # a text
    return " ".join(f"{random.choice(WORDS)}{random.randint(1, 999)}" for _ in range(words))


def named(verdict: Verdict) -> list[str]:
    """Return the ids that a verdict names for parts."""
    return [part.id for part in verdict.parts] if isinstance(verdict.parts, tuple) else []


def half(body: str) -> str:
    """Return the second half of a text."""
    return body[len(body) // 2 :]


def test_half_a_story_with_something_else_around_it() -> None:
    """It names the story, with the shares of both; the other way round too."""
    parts = Parts()
    story = text(1)
    assert parts.verdict("story", story).parts is msgspec.UNSET
    verdict = parts.verdict("half", f"{text(2, 75)} {half(story)} {text(3, 75)}")
    assert verdict.outcome == "unique"
    (part,) = verdict.parts if isinstance(verdict.parts, tuple) else ()
    assert part.id == "story"
    assert part.share_of_this == pytest.approx(1 / 3, abs=0.1)
    assert part.share_of_that == pytest.approx(1 / 2, abs=0.1)
    assert parts.detector.tally.with_parts == 1
    short = parts.verdict("digest", half(text(2, 75) + half(story)))
    assert named(short)[0] in {"half", "story"}


def test_chinese() -> None:
    """Stretches of twenty characters."""
    random = Random(5)  # a text
    story, other = ("".join(chr(random.randint(0x4E00, 0x9FA5)) for _ in range(900)) for _ in range(2))
    parts = Parts()
    parts.verdict("story", story)
    assert named(parts.verdict("half", other[:300] + story[200:700] + other[300:600])) == ["story"]


def test_the_greatest_share_comes_first_and_at_most_five_are_named() -> None:
    """Of several stories in one."""
    parts = Parts()
    stories = [text(number) for number in range(1, 8)]
    for number, story in enumerate(stories):
        parts.verdict(f"story {number}", story)
    mixed = " ".join(story[: 400 + 60 * number] for number, story in enumerate(stories))
    verdict = parts.verdict("mixed", mixed)
    assert isinstance(verdict.parts, tuple)
    assert len(verdict.parts) == 5
    greatest = [max(part.share_of_this, part.share_of_that) for part in verdict.parts]
    assert greatest == sorted(greatest, reverse=True)


def test_a_text_names_no_other_version_of_its_own_id_and_nothing_that_is_near() -> None:
    """Its own versions follow each other, and what is near is named already."""
    parts = Parts()
    story = text(1)
    parts.verdict("story", story)
    assert named(parts.verdict("story", f"{half(story)} {text(2)}")) == []
    parts = Parts()
    parts.verdict("story", story)
    copied = parts.verdict("copy", story + " the end")
    assert (copied.outcome, named(copied)) == ("duplicate", [])
    both = parts.verdict("both", f"{half(story)} {text(3, 100)}")
    assert named(both) == ["story"]


def test_only_earlier_articles_of_the_window_that_are_in_force() -> None:
    """What is retracted, replaced, too old or later is not named."""
    story = text(1)
    half_of_it = f"{half(story)} {text(2, 60)}"
    for before, expected in (([], ["story"]), ([make_tombstone("story", TIME_MS + 1_500)], [])):
        parts = Parts()
        parts.verdict("story", story)
        if before:
            parts.judge(*before)
        assert named(parts.verdict("half", half_of_it)) == expected
    parts = Parts()
    parts.verdict("story", story)
    parts.verdict("story", text(9))
    assert named(parts.verdict("half", half_of_it)) == []
    for days, expected in ((6.9, ["story"]), (7.1, [])):
        parts = Parts()
        parts.verdict("story", story, TIME_MS)
        assert named(parts.verdict("half", half_of_it, TIME_MS + int(days * MS_PER_DAY))) == expected
    parts = Parts()
    parts.verdict("story", story, TIME_MS + MS_PER_DAY)
    assert named(parts.verdict("half", half_of_it, TIME_MS)) == []


def test_articles_of_one_batch_see_those_before_them() -> None:
    """Whatever their order in the batch."""
    parts = Parts()
    story = text(1)
    first, second = parts.version("story", story), parts.version("half", f"{half(story)} {text(2, 60)}")
    verdicts = parts.judge(second, first)
    assert [named(verdict) for verdict in verdicts] == [["story"], []]


def test_what_becomes_a_duplicate_with_the_batch_is_not_named() -> None:
    """Nor what is near, though it was not decided yet when parts were looked for."""
    parts = Parts()
    story = text(1)
    arrived = [
        parts.version("story", story),
        parts.version("copy", story + " the end"),
        parts.version("another", story + " at last"),
        parts.version("half", f"{half(story)} {text(2, 60)}"),
    ]
    assert [named(verdict) for verdict in parts.judge(*arrived)] == [[], [], [], ["story"]]


def test_a_replay_gets_the_same_bytes() -> None:
    """Also where by now more could be said, or nothing: the first verdict stands."""
    store = MemoryStore()
    parts = Parts(store)
    story = text(1)
    arrived = [parts.version("story", story), parts.version("half", f"{half(story)} {text(2, 60)}")]
    first = [parts.detector.judge([each])[0].encoded for each in arrived]
    for again in (Parts(store), Parts(store, parts=False)):
        assert [again.detector.judge([each])[0].encoded for each in arrived] == first


def test_copies_of_known_originals_have_none() -> None:
    """They have no postings either."""
    parts = Parts()
    story = text(1)
    parts.verdict("story", story)
    original = f"{half(story)} {text(2, 100)}"
    assert named(parts.verdict("original", original)) == ["story"]
    copies = [parts.verdict(f"copy {number}", original) for number in range(3)]
    assert [copy.outcome for copy in copies] == ["duplicate"] * 3
    assert parts.detector.tally.known_copies == 2
    assert [named(copy) for copy in copies[1:]] == [[], []]


def test_the_postings_of_duplicates_are_removed() -> None:
    """Those of anchors too, also by a sweep."""
    store = MemoryStore()
    parts = Parts(store)
    story = parts.version("story", text(1), TIME_MS)
    copied = parts.version("copy", text(1) + " the end", TIME_MS + 1)
    assert {lane_of(key) for key in all_keys(story.record)} == {0, 1, LANE_PARTS}
    parts.judge(story, copied)
    assert store.stats().postings == len(postings_of(story.record)) == 24
    store.sweep(TIME_MS * 2, 10)
    assert store.stats().postings == 0


def test_a_notice_that_many_articles_have_is_not_a_part() -> None:
    """It gets no postings once it is common, and its shingles count for nothing."""
    parts = Parts()
    notice = text(99, 80)
    for number in range(COMMON_FROM + 1):
        parts.verdict(f"with notice {number}", f"{text(200 + number, 100)} {notice}")
    verdict = parts.verdict("one more", f"{text(300, 100)} {notice}")
    assert named(verdict) == []
    assert parts.detector.tally.common_anchors > 0
    widest = max(len(row.postings) for row in parts.store.look_up(part_keys(parts.version("any", notice).record)))
    assert widest <= COMMON_FROM


def test_what_is_common_counts_for_no_share() -> None:
    """Two articles that have a sentence in common share little beside the notice that many others have."""
    notice, sentence = text(99, 100), text(98, 20)
    pair = [f"{text(400 + number, 100)} {sentence} {notice}" for number in range(2)]
    parts = Parts()
    parts.verdict("first", pair[0])
    assert named(parts.verdict("second", pair[1])) == ["first"]
    parts = Parts()
    for number in range(COMMON_FROM):
        parts.verdict(f"with notice {number}", f"{text(200 + number, 100)} {notice}")
    parts.verdict("first", pair[0])
    compared = parts.detector.tally.record_reads
    assert named(parts.verdict("second", pair[1])) == []
    assert parts.detector.tally.record_reads > compared


def test_a_row_that_many_articles_share_is_ignored() -> None:
    """However the sketch came not to know of it, as after a start."""
    store = MemoryStore()
    story = text(1)
    for number in range(ROW_POSTINGS_MAX + 1):
        # A judge of its own for each: none has seen what the others have.
        parts = Parts(store)
        parts.verdict(f"quoting {number}", f"{text(10 + number, 60)} {half(story)}", TIME_MS + number)
    assert named(Parts(store).verdict("one more", f"{text(50, 60)} {half(story)}", TIME_MS + 100)) == []


def test_a_very_wide_row_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it came about: no posting of it is taken apart, and nothing is named by it."""
    monkeypatch.setattr(part_search, "ROW_WIDTH_MAX", 3)
    story, taken_apart = text(1), list[int]()
    plain = part_search._candidates_in

    def noting(rows: Mapping[bytes, PostingRow]) -> dict[bytes, Sequence[PartCandidate]]:
        taken_apart.extend(len(row.postings) for row in rows.values())
        return plain(rows)

    monkeypatch.setattr(part_search, "_candidates_in", noting)
    store = MemoryStore()
    for number in range(4):
        Parts(store).verdict(f"quoting {number}", f"{text(10 + number, 60)} {half(story)}", TIME_MS + number)
    assert max(taken_apart) == 3


def test_it_reads_and_writes_no_more_than_it_may() -> None:
    """Eight rows and sixteen postings an article."""
    parts = Parts()
    for number in range(10):
        parts.verdict(str(number), text(number, 400))
    assert parts.detector.tally.part_row_reads == 80
    (stored,) = parts.store.read([parts.version("9", text(9, 400)).reference])
    assert stored is not None
    assert len(part_keys(stored.record)) == 16
    assert all(len(key) == 6 for key in part_keys(stored.record))


def test_without_parts_nothing_is_read_or_written() -> None:
    """No anchor, no sample, no call more, and events keep their bytes."""
    calls: list[tuple[str, int]] = []

    class Noting(WatchedStore):
        @override
        def _call(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
            calls.append((name, items))
            return call()

    off = Parts(Noting(MemoryStore()), parts=False)
    version = off.version("a", text(1))
    assert (version.record.anchors, version.record.sample) == (None, None)
    (event,) = off.detector.judge([version])
    assert b'"parts"' not in event.encoded
    assert [call for call in calls if call[0] == "look_up"] == [("look_up", 8)]


def test_a_migration_posts_anchors_but_not_those_that_are_common() -> None:
    """What it adopts is found for a part from then on; rows of a notice stay short, as in a run."""
    old, new = Parts(parts=False), Parts()
    notice, story = text(99, 80), text(1)
    bodies = [f"{text(200 + number, 100)} {notice}" for number in range(2 * COMMON_FROM)] + [story]
    judge = AdoptingJudge(new.store, new.settings, lambda: TIME_MS, common=new.detector.common, old_store=old.store)
    for number, body in enumerate(bodies):
        old.verdict(str(number), body)
        judge.adopt([new.version(str(number), body)])
    assert judge.adopted.kept == len(bodies)
    rows = new.store.look_up(part_keys(new.version("any", notice).record))
    assert max(len(row.postings) for row in rows) == COMMON_FROM
    later_ms = TIME_MS + 3_600_000
    assert named(new.verdict("half", f"{half(story)} {text(2, 60)}", later_ms)) == [str(len(bodies) - 1)]


def test_a_query_names_parts_and_stores_nothing() -> None:
    """Of an article that would arrive now."""
    parts = Parts()
    story = text(1)
    parts.verdict("story", story)
    before = parts.store.stats()
    half_of_it, copy, own = parts.detector.query(
        [
            parts.version("half", f"{half(story)} {text(2, 60)}"),
            parts.version("copy", story + " the end"),
            parts.version("story", f"{half(story)} {text(2, 60)}"),
        ]
    )
    assert [part.id for part in half_of_it.parts] == ["story"]
    assert (copy.parts, own.parts) == ((), ())
    assert parts.store.stats() == before


def test_a_query_names_what_the_verdict_names_beside_a_common_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The anchors of the notice are not among the few that are looked up."""
    monkeypatch.setattr(part_search, "ANCHORS_LOOKED_UP", 1)
    parts = Parts()
    story, notice = text(1), text(99, 200)
    for number in range(COMMON_FROM + 3):
        parts.verdict(f"with notice {number}", f"{text(200 + number, 60)} {notice}")
    parts.verdict("story", story)
    counted = parts.detector.tally.common_anchors
    (result,) = parts.detector.query([parts.version("half", f"{story} {notice}")])
    assert parts.detector.tally.common_anchors == counted > 0
    assert [part.id for part in result.parts] == named(parts.verdict("half", f"{story} {notice}")) == ["story"]


def test_the_rows_of_a_batch_are_read_in_pieces() -> None:
    """A store may return fewer than were asked for, where they are big."""
    asked: list[int] = []

    class OneRow(MemoryStore):
        @override
        def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[object]:  # type: ignore[override]
            rows = super().look_up(keys, bytes_max)
            if lane_of(keys[0]) != LANE_PARTS:
                return rows  # type: ignore[return-value]
            asked.append(len(keys))
            return rows[:1]  # type: ignore[return-value]

    parts = Parts(OneRow())
    story = text(1)
    parts.verdict("story", story)
    assert named(parts.verdict("half", f"{half(story)} {text(2, 60)}")) == ["story"]
    assert asked == [8, 7, 6, 5, 4, 3, 2, 1] * 2
