"""Equal texts that a store kept without keys, taken over by settings under which they could be compared."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest

from consumer.fingerprint import BlockPlan, Fingerprinter, Fingerprints, Scheme, TextKind
from consumer.judge.comparison import compare
from consumer.judge.detector import Detector
from consumer.judge.events import kept_event
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.migration.adopting import AdoptingJudge
from consumer.migration.stand_ins import STAND_INS_MIN, WINDOW_PARTS
from consumer.model.article import Article
from consumer.model.verdict import VerdictEvent
from consumer.store_tools.inspection import verify
from consumer.workers.word_files import load_lexicon
from storage.clock import MS_PER_DAY
from storage.errors import StoreUnavailable
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.memory import MemoryStore
from storage.records import ID_HASH_BYTES, StoredVersion, Version, id_hash
from tests.builders import TIME_MS, make_tombstone
from tests.examples import drawn
from tests.unit.migration.test_adopting import Cut, state

POST = "😀😀😀 🎉"
RUSSIAN = (
    "Паром причалил на рассвете, когда над гаванью ещё стоял туман. Пассажиры сошли на берег молча, а грузчики сразу "
    "принялись за ящики с яблоками, которые везли с острова на осеннюю ярмарку. К полудню разошлись облака, и город "
    "проснулся: открылись лавки, загудел рынок, на площади настраивали скрипки."
)
TRADITIONAL = "氣象臺今天早晨發布通知說，本週末將有一次明顯的降溫過程，軟體工程師出行時請注意添加衣物並留意道路結冰。"
SIMPLIFIED = "气象台今天早晨发布通知说，本周末将有一次明显的降温过程，软件工程师出行时请注意添加衣物并留意道路结冰。"
WINDOW_MS = 7 * MS_PER_DAY
PART_MS = WINDOW_MS // WINDOW_PARTS
STAND_INS_MAX = STAND_INS_MIN * (WINDOW_PARTS + 1)
BATCH = 1_000

BEFORE = JudgeSettings(BlockPlan.named("4x16"), "before", Scheme(name="jieba-tfidf/1"), window_ms=WINDOW_MS)
NOW = replace(BEFORE, scheme_digest="now", scheme=Scheme(name="jieba-tfidf/2"))
LETTERS = replace(BEFORE, scheme_digest="letters", scheme=Scheme(name="jieba-tfidf/3"))
EITHER = pytest.mark.parametrize("now", [NOW, LETTERS], ids=["every script", "letters"])
SPACED = tuple("加微信领红包".replace("微", between + "微", 1) for between in ("", " ", "-", ".", "_", "·", "\n"))
"""Posts with few keywords that are one text where letters are compared, and as many elsewhere, but for white space."""
APART = MappingProxyType({"apart": SourceRule(within_source=False), "strict": SourceRule(similarity_min=0.9)})


@cache
def fingerprinted(text: str, scheme: Scheme, lang: str) -> Fingerprints:
    """Fingerprint a text by a scheme."""
    return Fingerprinter(scheme, load_lexicon()).fingerprint([text], [lang])


def version(
    settings: JudgeSettings,
    number: int,
    text: str = POST,
    *,
    time_ms: int = TIME_MS,
    source: str = "wire",
    title: str = "",
    lang: str = "",
) -> Version:
    """Return the article with this number and text, as these settings have it."""
    builder = VersionBuilder(settings.scheme.name, settings.plan, settings.lane1)
    article = Article(id=f"post {number}", body=text, source=source, title=title, lang=lang)
    fingerprints = fingerprinted(text, settings.scheme, lang)
    return builder.versions([article], [ArrivalTime(time_ms, number)], fingerprints)[0]._replace(body=None)


def judged(store: Store, settings: JudgeSettings, *those: Version) -> list[VerdictEvent]:
    """Judge these, one by one."""
    detector = Detector(store, settings, lambda: TIME_MS)
    return [event for each in those for event in detector.judge([each])]


def filled(
    store: Store, before: Store, those: Sequence[Version], settings: JudgeSettings = NOW, batch: int = BATCH
) -> AdoptingJudge:
    """Fill a store with these, some at a time."""
    fill = AdoptingJudge(store, settings, lambda: TIME_MS + 1_000, old_store=before)
    for at in range(0, len(those), batch):
        fill.judge(those[at : at + batch])
    return fill


def posted(store: Store) -> list[str]:
    """Return the ids of what can be found, in order of arrival."""
    versions = sorted(
        (each for each in store.scan() if isinstance(each, StoredVersion)), key=lambda each: each.record.arrival
    )
    return [
        record.id
        for record in (each.record for each in versions)
        if record.keys
        and all(record.reference in row.postings["reference"].tolist() for row in store.look_up(record.keys))
    ]


@pytest.fixture(params=["memory", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store to fill."""
    if request.param == "memory":
        yield MemoryStore(clock=lambda: TIME_MS)
        return
    opened = LmdbStore.open(tmp_path / "new", LmdbOptions(durability="process", clock=lambda: TIME_MS))
    try:
        yield opened
    finally:
        opened.close()


def numbered(like: Version, number: int, time_ms: int) -> Version:
    """Return an equal article with another id."""
    article_id = f"post {number}"
    reference = id_hash(article_id) + like.record.reference[ID_HASH_BYTES:]
    record = msgspec.structs.replace(like.record, reference=reference, id=article_id, time_ms=time_ms, sequence=number)
    return Version(record, None)


def many_kept(count: int, span_ms: int = WINDOW_MS, now: JudgeSettings = NOW) -> tuple[Store, list[Version]]:
    """Return a store that kept so many equal posts in this time, and the same posts by the new settings."""
    before = MemoryStore(clock=lambda: TIME_MS)
    times = [TIME_MS + number * span_ms // count for number in range(count)]
    likes = [version(settings, 0) for settings in (BEFORE, now)]
    old, new = ([numbered(like, *each) for each in enumerate(times)] for like in likes)
    assert {each.record.keys for each in old} == {()}
    before.create(old)
    before.settle(
        [(each.reference, kept_event(each.record, truncated=False, decided_ms=TIME_MS).encoded) for each in old]
    )
    return before, new


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.load)])
@pytest.mark.parametrize("now", drawn([NOW, LETTERS], 2), ids=lambda now: now.scheme.name)
def test_more_equal_posts_than_a_row_may_have(store: Store, count: int, now: JudgeSettings) -> None:
    """They keep their verdicts, fill no row, and each new copy is flagged, by a few comparisons, for as long again."""
    before, posts = many_kept(count, now=now)
    fill = filled(store, before, posts, now)
    found = posted(store)
    assert len(found) <= STAND_INS_MAX
    assert (fill.adopted.kept, fill.adopted.flagged_now) == (count, count - 1)
    assert store.read([post.reference for post in posts[::997]]) == [
        StoredVersion(
            post.record if post.record.id in found else msgspec.structs.replace(post.record, keys=()), old.verdict, None
        )
        for post, old in zip(posts[::997], before.read([post.reference for post in posts[::997]]), strict=True)
        if old is not None
    ]
    stats = store.stats()
    assert (stats.versions, stats.verdicts, stats.crowded_rows) == (count, count, 0)
    assert stats.widest_row == len(found)
    detector = Detector(store, now, lambda: TIME_MS)
    for number, time_ms in enumerate((posts[-1].record.time_ms, posts[-1].record.time_ms + WINDOW_MS - 2 * PART_MS)):
        (event,) = detector.judge([version(now, count + number, time_ms=time_ms)])
        assert event.verdict.outcome == "duplicate"
        assert event.verdict.duplicate_of in found
        assert not event.verdict.truncated
    assert detector.tally.verifications.total <= 2 * STAND_INS_MAX


def test_what_is_found_is_spread_over_the_window() -> None:
    """Whenever a copy comes, a little less than a window after a post, one of those that stand in for it is near."""
    before, posts = many_kept(2_000)
    store = MemoryStore(clock=lambda: TIME_MS)
    filled(store, before, posts, batch=300)
    for post in posts[::97]:
        (query,) = Detector(store, NOW, lambda: TIME_MS).query(
            [version(NOW, 5_000, time_ms=post.record.time_ms + WINDOW_MS - PART_MS)]
        )
        assert len(query.matches) >= STAND_INS_MIN


@EITHER
def test_each_text_counts_for_itself(store: Store, now: JudgeSettings) -> None:
    """Texts of every kind that the old settings could not compare; those that they could all have their postings."""
    before = MemoryStore()
    texts = [POST, RUSSIAN, "!!!", TRADITIONAL]
    those = [(number, text) for number, text in enumerate(texts * 4)]
    kinds = [TextKind(version(now, 0, text).record.kind) for text in texts]
    assert kinds == [TextKind.SHORT, TextKind.SHINGLED, TextKind.SHORT, TextKind.LONG]
    sent = judged(before, BEFORE, *(version(BEFORE, number, text) for number, text in those))
    fill = AdoptingJudge(store, now, lambda: TIME_MS + 1_000, old_store=before)
    assert fill.judge([version(now, number, text) for number, text in those]) == sent
    assert posted(store) == [f"post {number}" for number in range(8) if number != 7]
    assert fill.adopted.flagged_now == 9
    copies = [
        version(now, 100, POST),
        version(now, 101, RUSSIAN.replace("яблоками", "грушами")),
        version(now, 102, SIMPLIFIED),
    ]
    found = [event.verdict.duplicate_of for event in judged(store, now, *copies)]
    assert found == ["post 0", "post 1", "post 3"]


def test_those_that_differ_in_what_may_match_them_stay(store: Store) -> None:
    """Posts of sources with other rules, posts of another part of the window, and other versions of one id."""
    settings = replace(NOW, sources=APART)
    before = MemoryStore()
    old, new = (
        [
            version(by, 0),
            version(by, 1),
            version(by, 2, source="apart"),
            version(by, 3, source="apart"),
            version(by, 4, source="apart"),
            version(by, 5, source="strict"),
            version(by, 6, time_ms=TIME_MS + PART_MS + 1),
            version(by, 7, source="other"),
        ]
        for by in (BEFORE, settings)
    )
    judged(before, BEFORE, *old)
    filled(store, before, new, settings)
    assert posted(store) == [f"post {number}" for number in range(7)]


def test_those_that_another_source_is_kept_apart_from_stay() -> None:
    """A third source that never repeats one of two may repeat the other, which does not stand in for the first."""
    rules = {"paper": SourceRule(never_with=("wire",))}
    for sources, expected in ((rules, [0, 1, 4]), ({}, [0, 1])):
        settings = replace(NOW, sources=MappingProxyType(sources))
        before, store = MemoryStore(), MemoryStore(clock=lambda: TIME_MS)
        old, new = (
            [version(by, n, source=name) for n, name in enumerate(("x", "x", "x", "y", "wire"))]
            for by in (BEFORE, settings)
        )
        judged(before, BEFORE, *old)
        filled(store, before, new, settings)
        assert posted(store) == [f"post {number}" for number in expected]


def test_a_text_of_another_language_has_its_own(store: Store) -> None:
    """It has other shingles, if only some, and another edit may match it."""
    chance = random.Random("Korean")
    korean = " ".join("".join(map(chr, chance.choices(range(0xAC00, 0xD7A4), k=4))) for _ in range(80))
    mixed = korean + RUSSIAN[:60]
    before = MemoryStore()
    old, new = (
        [version(by, number, mixed, lang=lang) for number, lang in enumerate(["", "", "ja", "ja", "ja", ""])]
        for by in (BEFORE, NOW)
    )
    assert compare(StoredVersion(new[0].record, None, None), [StoredVersion(new[2].record, None, None)], NOW)[0].near
    judged(before, BEFORE, *old)
    filled(store, before, new, batch=1)
    assert posted(store) == ["post 0", "post 1", "post 2", "post 3"]


def test_texts_that_are_only_alike_are_not_equal(store: Store) -> None:
    """They may have the same shingles, as without a comma; each has its own."""
    before = MemoryStore()
    texts = [RUSSIAN, RUSSIAN, RUSSIAN.replace(",", ""), RUSSIAN.replace(",", ""), RUSSIAN]
    old, new = ([version(by, *each) for each in enumerate(texts)] for by in (BEFORE, NOW))
    assert len({each.record.sketch for each in new}) == 1
    judged(before, BEFORE, *old)
    filled(store, before, new, batch=1)
    assert posted(store) == ["post 0", "post 1", "post 2", "post 3"]


def test_one_without_a_verdict_stands_in_for_nothing(store: Store) -> None:
    """It may become a duplicate yet."""
    before = MemoryStore()
    judged(before, BEFORE, *(version(BEFORE, number) for number in range(2)))
    pending = [version(NOW, number) for number in (8, 9)]
    store.create(pending)
    store.add([each.record for each in pending])
    filled(store, before, [version(NOW, number) for number in range(2)])
    assert set(posted(store)) == {"post 0", "post 1", "post 8", "post 9"}


def test_a_version_does_not_stand_in_for_another_of_its_id(store: Store) -> None:
    """It ends where the other begins, and would not match what repeats both."""
    before = MemoryStore()
    old, new = (
        [version(by, 0), version(by, 1, time_ms=TIME_MS + 1), version(by, 0, time_ms=TIME_MS + 2, title="Party")]
        for by in (BEFORE, NOW)
    )
    judged(before, BEFORE, *old)
    filled(store, before, new[:1])
    filled(store, before, new[1:])
    assert [each.record.keys != () for each in store.read([each.reference for each in new]) if each] == [True] * 3


def test_posts_that_the_old_settings_compared_stay(store: Store) -> None:
    """Of a source that is never flagged every post is kept, and found as before."""
    never = MappingProxyType({"wire": SourceRule(flag="never")})
    before, settings = MemoryStore(), replace(NOW, sources=never)
    those = [version(settings, number) for number in range(5)]
    judged(before, settings, *those)
    filled(store, before, those, settings)
    assert len(posted(store)) == 5


def test_one_that_is_gone_stands_in_for_nothing(store: Store) -> None:
    """A post that was retracted, or replaced, or is not kept, when another of its text is taken over."""
    before = MemoryStore()
    first, *more = (version(BEFORE, number) for number in range(4))
    judged(before, BEFORE, first, *more)
    fill = AdoptingJudge(store, NOW, lambda: TIME_MS + 1_000, old_store=before)
    fill.judge([version(NOW, 0)])
    fill.judge([make_tombstone("post 0", TIME_MS + 1, 1)])
    fill.judge([version(NOW, number) for number in (1, 2, 3)])
    assert posted(store) == ["post 0", "post 1", "post 2"]
    fill.judge([make_tombstone("post 1", TIME_MS + 2, 2)])
    assert judged(store, NOW, version(NOW, 9, time_ms=TIME_MS + 3))[0].verdict.duplicate_of == "post 2"


def test_nothing_is_wrong_with_the_store_afterwards(store: Store) -> None:
    """What has no keys lacks no postings, and is near nothing that is kept."""
    before, posts = many_kept(400)
    filled(store, before, posts, batch=100)
    found = posted(store)
    wrong = list(verify(store, NOW))[-1].wrong
    assert all(any(repr(name) in sentence for name in found) for sentence in wrong)
    assert not any("lacks" in sentence for sentence in wrong)


@pytest.mark.parametrize("calls", range(12))
def test_a_crash_anywhere_does_not_change_which_are_found(calls: int) -> None:
    """After a crash between any two calls of the store, the same posts have their postings."""
    before, posts = many_kept(6, 6)
    whole, cut = MemoryStore(clock=lambda: TIME_MS), MemoryStore(clock=lambda: TIME_MS)
    filled(whole, before, posts)
    try:
        filled(Cut(cut, calls), before, posts)  # type: ignore[arg-type]  # it does what a store does
    except StoreUnavailable:
        assert calls < 11
    filled(cut, before, posts)
    assert state(cut) == state(whole)
    assert len(posted(cut)) == STAND_INS_MIN


@EITHER
def test_what_was_said_is_found_in_either_script(store: Store, now: JudgeSettings) -> None:
    """A version has the same reference by both schemes, whatever it is written in, and its old verdict."""
    texts = [SIMPLIFIED, TRADITIONAL, POST, RUSSIAN, ""]
    before = MemoryStore()
    old, new = ([version(by, *each) for each in enumerate(texts)] for by in (BEFORE, now))
    sent = judged(before, BEFORE, *old)
    assert [event.verdict.outcome for event in sent] == ["unique"] * 5
    assert [each.reference for each in old] == [each.reference for each in new]
    assert len({each.reference[ID_HASH_BYTES:] for each in new}) == 5
    assert new[0].record.text_digest == new[1].record.text_digest
    fill = AdoptingJudge(store, now, lambda: TIME_MS + 1_000, old_store=before)
    assert fill.judge(new) == sent
    assert judged(store, now, *new) == sent
    assert fill.adopted.flagged_now == 1


def test_posts_that_differ_in_a_space_have_a_few_that_stand_in(store: Store) -> None:
    """Any number of them was kept, none being equal; where letters are compared they are one text."""
    before = MemoryStore()
    old, new = ([version(by, *each) for each in enumerate(SPACED)] for by in (NOW, LETTERS))
    sent = judged(before, NOW, *old)
    kept = [event.verdict.id for event in sent if event.verdict.outcome == "unique"]
    assert len(kept) >= len(SPACED) - 1
    fill = filled(store, before, new, LETTERS, batch=3)
    # The first one has no space, so that its digest is what it was.
    assert posted(store) == kept[: 1 + STAND_INS_MIN]
    assert fill.adopted.flagged_now == len(kept) - 1
    assert [each and each.verdict for each in store.read([each.reference for each in new])] == [
        event.encoded for event in sent
    ]
    (copy,) = judged(store, LETTERS, version(LETTERS, 9, "加 微 信 领 红 包", time_ms=TIME_MS + 1))
    assert copy.verdict.duplicate_of in posted(store)


def test_equal_texts_with_other_facts_stand_in_for_none(store: Store) -> None:
    """The guard compares facts, which are read before spaces between letters go."""
    settings = [replace(by, scheme=replace(by.scheme, facts=True), facts_shared_min=0.8) for by in (NOW, LETTERS)]
    before = MemoryStore()
    texts = ["we met Anna Bell", "we met AnnaBell", "we met Anna-Bell", "we met Anna.Bell"]
    old, new = ([version(by, *each) for each in enumerate(texts)] for by in settings)
    assert len({each.record.text_digest for each in new}) == 1
    assert len({each.record.facts for each in new}) > 1
    judged(before, settings[0], *old)
    filled(store, before, new, settings[1])
    assert {each.record.facts for each in new} == {each.record.facts for each in new if each.record.id in posted(store)}


def test_long_texts_keep_their_keys(store: Store) -> None:
    """The old settings have compared them by their sketches, so that there are few equal ones."""
    before = MemoryStore()
    texts = [SIMPLIFIED.replace(character, f" {character}", 1) for character in "今早晨发布"]
    old, new = ([version(by, *each) for each in enumerate(texts)] for by in (NOW, LETTERS))
    assert {each.record.kind for each in old} == {TextKind.LONG}
    assert len({(each.record.text_digest, each.record.fingerprint) for each in new}) == 1
    before.create(old)
    before.settle(
        [(each.reference, kept_event(each.record, truncated=False, decided_ms=TIME_MS).encoded) for each in old]
    )
    filled(store, before, new, LETTERS)
    assert len(posted(store)) == len(texts)
