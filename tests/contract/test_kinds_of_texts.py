"""Short posts in any script, texts of shingles, and both Chinese scripts, judged through every store."""

from collections.abc import Iterator, Sequence

import pytest

from consumer.fingerprint import BlockPlan, Fingerprinter, Lexicon, Scheme, TextKind, normalise
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from consumer.workers.word_files import load_lexicon
from storage.interface import Store
from storage.records import Version
from tests.builders import TIME_MS, make_key, make_record
from tests.contract.conftest import Kind, SetClock

SCHEME = Scheme(name="jieba-tfidf/2")
POSTS = (
    "😀😀😀 🎉",
    "🎂",
    "❤️ 👍🏽",
    "Привет, как дела?",
    "สวัสดีครับ",
    "हिन्दी में",
    "Chúc mừng năm mới",
    "안녕하세요",
    "…",
    "!?",
    "12:30",
)
RUSSIAN = (
    "Паром причалил на рассвете, когда над гаванью ещё стоял туман. Пассажиры сошли на берег молча, а грузчики сразу "
    "принялись за ящики с яблоками, которые везли с острова на осеннюю ярмарку. К полудню разошлись облака, и город "
    "проснулся: открылись лавки, загудел рынок, на площади настраивали скрипки."
)
TRADITIONAL = "氣象臺今天早晨發布通知說，本週末將有一次明顯的降溫過程，軟體工程師出行時請注意添加衣物並留意道路結冰。"
SIMPLIFIED = "气象台今天早晨发布通知说，本周末将有一次明显的降温过程，软件工程师出行时请注意添加衣物并留意道路结冰。"


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The lexicon of the jieba package."""
    return load_lexicon()


@pytest.fixture
def fingerprinter(lexicon: Lexicon, settings: JudgeSettings) -> Fingerprinter:
    """The scheme for every script, as it is for these settings."""
    return Fingerprinter(SCHEME, lexicon, sketched=settings.sketched)


@pytest.fixture(params=["4x16", "16x28"])
def plan(request: pytest.FixtureRequest) -> BlockPlan:
    """Both plans of 64 bits."""
    return BlockPlan.named(request.param)


@pytest.fixture(params=[True, False], ids=["verified", "plain"])
def settings(request: pytest.FixtureRequest, plan: BlockPlan) -> JudgeSettings:
    """Sketches decide, or the distance of fingerprints."""
    return JudgeSettings(
        plan=plan, scheme_digest="every script", scheme=SCHEME, verify=request.param, lane1=request.param
    )


@pytest.fixture
def store(kind: Kind, clock: SetClock) -> Iterator[Store]:
    """Yield an empty store, which is for fingerprints of 64 bits."""
    with kind.opened(clock, 1_000) as opened:
        yield opened


def versions(
    texts: Sequence[str], settings: JudgeSettings, fingerprinter: Fingerprinter, first: int = 0
) -> list[Version]:
    """Return an article with each text; they are numbered from ``first`` in order of arrival."""
    numbers = range(first, first + len(texts))
    builder = VersionBuilder(SCHEME.name, settings.plan, settings.lane1)
    return builder.versions(
        [Article(id=f"article {number}", body=text) for number, text in zip(numbers, texts, strict=True)],
        [ArrivalTime(TIME_MS + number, number) for number in numbers],
        fingerprinter.fingerprint(texts),
    )


def named(store: Store, settings: JudgeSettings, those: Sequence[Version]) -> list[str | None]:
    """Judge these and return which article each repeats."""
    detector = Detector(store, settings, lambda: TIME_MS)
    return [event.verdict.duplicate_of for event in detector.judge(those)]


def changed(posts: Sequence[str]) -> list[str]:
    """Return what becomes of posts with one character more, less, or another one, without what equals one of them."""
    pieces = [(post[:at], post[at], post[at + 1 :]) for post in posts for at in range(len(post))]
    texts = [
        *(before + after for before, _, after in pieces),
        *(f"{before}★{after}" for before, _, after in pieces),
        *(f"{before}{char}★{after}" for before, char, after in pieces),
    ]
    same = {"", *map(normalise, posts)}
    return list({normalise(text): text for text in texts if normalise(text) not in same}.values())


def test_equal_posts_are_found_and_changed_ones_are_not(
    store: Store, settings: JudgeSettings, fingerprinter: Fingerprinter
) -> None:
    """All that differ in nothing that counts, whatever their script; none in which a character differs."""
    originals = versions(POSTS, settings, fingerprinter)
    assert {TextKind(version.record.kind) for version in originals} == {TextKind.SHORT}
    assert named(store, settings, originals) == [None] * len(POSTS)
    copies = versions([f"  {post.upper()}\u200b\n" for post in POSTS], settings, fingerprinter, 100)
    assert named(store, settings, copies) == [version.record.id for version in originals]
    others = changed(POSTS)
    assert len(others) > 200
    assert named(store, settings, versions(others, settings, fingerprinter, 200)) == [None] * len(others)


def test_texts_of_shingles_are_found_edited_where_sketches_decide(
    store: Store, settings: JudgeSettings, fingerprinter: Fingerprinter
) -> None:
    """Plain SimHash finds equal ones alone: a few keywords, or none, say nothing about a text."""
    texts = [
        RUSSIAN,
        RUSSIAN.replace("яблоками", "грушами"),
        RUSSIAN.upper(),
        "Совсем другое дело. " * 3 + RUSSIAN[:90],
    ]
    those = versions(texts, settings, fingerprinter)
    assert TextKind(those[0].record.kind) is (TextKind.SHINGLED if settings.sketched else TextKind.SHORT)
    first = "article 0"
    assert named(store, settings, those) == [None, first if settings.verify else None, first, None]


def test_both_chinese_scripts_are_one(store: Store, settings: JudgeSettings, fingerprinter: Fingerprinter) -> None:
    """Whichever comes first; they stay two versions."""
    those = versions([TRADITIONAL, SIMPLIFIED, TRADITIONAL], settings, fingerprinter)
    assert named(store, settings, those) == [None, "article 0", "article 0"]
    assert those[0].record.reference[16:] == those[2].record.reference[16:] != those[1].record.reference[16:]


def test_digests_that_begin_alike_are_not_equal_texts(store: Store, settings: JudgeSettings) -> None:
    """A fingerprint that is the beginning of a digest matches nothing by itself, at any distance, in any number."""
    fingerprints = [0x0123_4567_89AB_CDEF ^ (1 << number % 4) - 1 for number in range(40)]
    those = [
        Version(
            make_record(
                f"article {number}",
                b"%d" % number,
                TIME_MS + number,
                kind=int(TextKind.SHORT),
                fingerprint=fingerprint.to_bytes(8, "big"),
                text_digest=fingerprint.to_bytes(8, "big") + b"%08d" % number,
                sketch=bytes(256),
                keys=tuple(make_key(fingerprint >> 48 - 16 * place & 0xFFFF, number=place) for place in range(4)),
            ),
            None,
        )
        for number, fingerprint in enumerate(fingerprints)
    ]
    assert named(store, settings, those) == [None] * 40
