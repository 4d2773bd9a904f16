"""What articles repeat of known texts: equal, similar and as a part; and how banks change while they are used."""

import random
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from consumer.banks import known_texts
from consumer.banks.bank import Bank, BankError, BankItem, Banks, Entry
from consumer.banks.item_fingerprints import ItemFingerprints
from consumer.banks.known_texts import PART_LETTERS_MIN, KnownTexts
from consumer.banks.rows import ROW_ITEMS_MAX
from consumer.fingerprint import BlockPlan, Engine, Scheme
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from consumer.model.verdict import BANK_MATCHES_MAX
from consumer.workers.engines import chosen_engine, new_engine
from consumer.workers.word_files import load_lexicon
from storage.records import BankMatch, Version
from tests.builders import TIME_MS

LEXICON = load_lexicon()
SCHEME = Scheme(name="jieba-tfidf/3")
SETTINGS = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="", scheme=SCHEME, similarity_min=0.73)
BUILDER = VersionBuilder(SCHEME.name, SETTINGS.plan, SETTINGS.lane1)
SPAM = Bank(bank="spam", action="deny")
NOTICES = Bank(bank="notices", action="allow")
WORDS = [
    f"{first}{middle}{last}"
    for first in ("har", "fer", "mar", "win", "riv", "bri", "cop", "sol", "tun")
    for middle in ("da", "lo", "mi", "pe", "su", "va")
    for last in ("bour", "ket", "ter", "den", "low", "nock", "gram")
]


def written(seed: int, words: int = 60) -> str:
    """Return a text that no other seed resembles."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def edited(text: str, changes: int, seed: int = 0) -> str:
    """Return a text in which some words are others."""
    drawn, words = random.Random(seed), text.split()
    for place in drawn.sample(range(len(words)), changes):
        words[place] = f"changed{place}"
    return " ".join(words)


def item(text: str, name: str = "offer", bank: str = "spam", **more: object) -> BankItem:
    """Return an item."""
    return msgspec.convert({"bank": bank, "item": name, "text": text, **more}, BankItem)


@pytest.fixture(scope="module")
def engine() -> Engine:
    """Return the engine of a run."""
    return new_engine(chosen_engine("auto", SCHEME, LEXICON).name, SCHEME, LEXICON, sketched=True, parts=False)


@pytest.fixture
def known(engine: Engine) -> KnownTexts:
    """Return a process without banks."""
    return KnownTexts(engine, SETTINGS, lambda: TIME_MS)


def versions_of(known: KnownTexts, *texts: str, sources: Sequence[str] = ()) -> list[Version]:
    """Return a version for each text, as a run makes it."""
    articles = [
        Article(f"a{place}", text, source=sources[place] if sources else "") for place, text in enumerate(texts)
    ]
    fingerprints = known.engine.fingerprint(list(texts), None, known.known_shingles)
    return BUILDER.versions(articles, [ArrivalTime(TIME_MS, place) for place in range(len(texts))], fingerprints)


def matches_of(known: KnownTexts, *texts: str, sources: Sequence[str] = ()) -> list[tuple[BankMatch, ...]]:
    """Return what each text repeats, as a run finds it."""
    versions = known.with_matches(versions_of(known, *texts, sources=sources))
    return [version.record.bank_matches or () for version in versions]


def found(known: KnownTexts, text: str) -> list[tuple[str, str]]:
    """Return the items that one text repeats, and how."""
    return [(match.item, match.form) for match in matches_of(known, text)[0]]


def test_equal_similar_and_part(known: KnownTexts) -> None:
    """Each form with its similarity; an unrelated text repeats nothing."""
    text = written(1)
    known.change([SPAM, item(text)])
    longer = f"{written(2, 120)} {text} {written(3, 120)}"
    equal, similar, part, other = matches_of(known, text, edited(text, 3), longer, written(4))
    assert equal == (BankMatch("spam", "offer", "deny", "equal", 1.0),)
    assert similar[0].form == "similar"
    assert 0.7 <= similar[0].similarity < 1
    assert part[0].form == "part"
    assert part[0].similarity >= 0.9
    assert other == ()


def test_a_slogan_is_found_by_equality_alone(known: KnownTexts) -> None:
    """It has too few letters for anything else."""
    known.change([SPAM, item("\u9650\u65f6\u62a2\u8d2d\u4f18\u60e0"), item("Win a ferry ticket", "english")])
    assert found(known, "\u9650\u65f6\u62a2\u8d2d\u4f18\u60e0") == [("offer", "equal")]
    assert found(known, "Win a ferry ticket") == [("english", "equal")]
    assert found(known, "Win a ferry ticket today") == []


@pytest.mark.parametrize(("letters", "is_found"), [(PART_LETTERS_MIN - 1, False), (PART_LETTERS_MIN, True)])
def test_a_part_needs_enough_letters(known: KnownTexts, letters: int, *, is_found: bool) -> None:
    """A shorter one stands in too many articles."""
    text = written(5).replace(" ", "")[:letters]
    known.change([SPAM, item(text)])
    assert (found(known, f"{written(6)} {text} {written(7)}") == [("offer", "part")]) is is_found


def test_a_part_need_not_be_whole(known: KnownTexts) -> None:
    """Two fifths of an item are no match; nine tenths are."""
    words = written(8, 100).split()
    known.change([SPAM, item(" ".join(words))])
    around = written(9, 100)
    assert found(known, f"{around} {' '.join(words[:40])} {around}") == []
    assert found(known, f"{around} {' '.join(words[:92])} {around}") == [("offer", "part")]


def test_what_allows_is_the_text_and_nothing_else(known: KnownTexts) -> None:
    """A long text with a notice pasted in would pass otherwise; so would one that is only rather similar."""
    notice = written(10, 100)
    known.change([NOTICES, item(notice, "closure", "notices")])
    assert found(known, notice) == [("closure", "equal")]
    assert found(known, edited(notice, 1)) == [("closure", "similar")]
    assert found(known, edited(notice, 8)) == []
    assert found(known, f"{written(11)} {notice}") == []


def test_a_batch_of_retractions_repeats_nothing(known: KnownTexts) -> None:
    """It has no versions."""
    known.change([SPAM, item(written(1))])
    assert known.with_matches([]) == []


def test_another_number_is_not_allowed(engine: Engine) -> None:
    """Where slots are compared: a notice with another account. To be denied it is still alike."""
    scheme = replace(SCHEME, slots=True)
    settings = replace(SETTINGS, scheme=scheme, slot_conflicts_max=0)
    slotted = new_engine(chosen_engine("auto", scheme, LEXICON).name, scheme, LEXICON, sketched=True, parts=False)
    known = KnownTexts(slotted, settings, lambda: TIME_MS)
    notice = f"{written(12)} pay the fee of 250 to the account 4711 before Friday {written(13)}"
    known.change([NOTICES, SPAM, item(notice, "fee", "notices"), item(notice, "fee")])
    assert found(known, notice) == [("fee", "equal"), ("fee", "equal")]
    forged = notice.replace("4711", "9823")
    assert [match.bank for match in matches_of(known, forged)[0]] == ["spam"]
    assert [match.bank for match in matches_of(known, notice.replace("Friday", "Monday"))[0]] == ["notices", "spam"]


def test_the_similarity_of_item_and_bank(known: KnownTexts) -> None:
    """That of the item counts before that of the bank."""
    text = written(14)
    near = edited(text, 3)
    known.change([SPAM, item(text)])
    assert found(known, near)
    known.change([msgspec.structs.replace(SPAM, similarity=0.99)])
    assert not found(known, near)
    known.change([item(text, similarity=0.6)])
    assert found(known, near)


def test_an_item_ends(engine: Engine) -> None:
    """At its time, by the clock of the process."""
    now = [TIME_MS]
    known = KnownTexts(engine, SETTINGS, lambda: now[0])
    text = written(15)
    known.change([SPAM, item(text, until="2023-11-14T22:13:20.001Z")])
    assert found(known, text)
    now[0] += 1
    assert not found(known, text)


def test_the_most_important_matches_are_kept(known: KnownTexts) -> None:
    """What allows first, and then the most similar; what is left out is counted."""
    text = written(16)
    many = [item(edited(text, number // 4, number), f"i{number:02}") for number in range(BANK_MATCHES_MAX + 2)]
    known.change([SPAM, NOTICES, *many, item(text, "own", "notices")])
    (matches,) = matches_of(known, text)
    assert len(matches) == BANK_MATCHES_MAX
    assert matches[0].item == "own"
    similarities = [match.similarity for match in matches[1:]]
    assert similarities == sorted(similarities, reverse=True)


def test_of_items_as_similar_the_first_by_name_are_kept(known: KnownTexts) -> None:
    """Also where there are more of them than are kept, and in several banks; those of a disabled bank take no place."""
    text, banks = written(16), ("a", "a-b", "b")
    entries = [Bank(bank=bank, action="deny") for bank in banks]
    many = [item(text, f"i{number:02}", bank) for bank in banks for number in range(BANK_MATCHES_MAX - 1)]
    known.change([*entries, *many])
    (matches,) = matches_of(known, text)
    names = [(match.bank, match.item) for match in matches]
    assert names == sorted(entry.key for entry in many)[:BANK_MATCHES_MAX]
    assert {match.form for match in matches} == {"equal"}
    known.change([msgspec.structs.replace(entries[0], enabled=False)])
    (matches,) = matches_of(known, text)
    assert {match.bank for match in matches} == {"a-b", "b"}
    assert known.matches(versions_of(known, text)).limited == 1


def test_a_text_in_too_many_items_is_cut(known: KnownTexts) -> None:
    """Whoever adds the same text a thousand times makes no article slow."""
    text = written(17)
    known.change([SPAM, *(item(text, f"i{number}") for number in range(ROW_ITEMS_MAX + 5))])
    assert len(matches_of(known, text)[0]) == BANK_MATCHES_MAX
    # Its text, its bands and its shingles all stand in too many items: the article still counts once.
    assert known.matches(versions_of(known, text, written(18))).limited == 1


def test_changes_are_followed(known: KnownTexts) -> None:
    """Switching off and on, another text, and removal, of items and of banks."""
    first, second = written(18), written(19)
    known.change([SPAM, item(first)])
    known.change([item(second)])
    assert (found(known, first), found(known, second)) == ([], [("offer", "equal")])
    known.change([item(second, enabled=False)])
    assert (len(known), found(known, second)) == (0, [])
    known.change([item(second)])
    known.change([msgspec.structs.replace(SPAM, enabled=False)])
    assert found(known, second) == []
    known.change([SPAM])
    assert found(known, second) == [("offer", "equal")]
    known.change([BankItem(bank="spam", item="offer", removed=True)])
    assert found(known, second) == []


def test_a_bank_that_is_made_anew_has_no_items(known: KnownTexts) -> None:
    """Also where all of it comes at once."""
    text = written(20)
    known.change([SPAM, item(text), Bank(bank="spam", removed=True), Bank(bank="spam", action="allow")])
    assert found(known, text) == []
    known.change([item(text, "again")])
    known.change([Bank(bank="spam", removed=True), SPAM])
    assert (len(known), found(known, text)) == (0, [])


def test_whole_banks_are_compared_with_what_is_held(known: KnownTexts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what changed is computed again."""
    texts = [written(21 + number) for number in range(3)]
    banks = Banks.of([SPAM, *(item(text, f"i{place}") for place, text in enumerate(texts))])
    known.replace(banks.entries())
    computed: list[str] = []
    own = known.engine.smallest_shingles

    def recorded(texts: Sequence[str], languages: Sequence[str] | None = None) -> tuple[bytes, ...]:
        computed.extend(texts)
        return own(texts, languages)

    monkeypatch.setattr(known.engine, "smallest_shingles", recorded)
    known.replace(banks.after([item(texts[2], "i1"), BankItem(bank="spam", item="i0", removed=True)]).entries())
    assert computed == [texts[2]]
    assert [found(known, text) for text in texts] == [[], [], [("i1", "equal"), ("i2", "equal")]]


def test_what_was_computed_earlier_is_not_computed_again(engine: Engine) -> None:
    """Another process finds the same, and computes what changed in the meantime: text, settings, and action."""
    texts = [written(60 + number) for number in range(6)]
    notices = [item(texts[0], "n0", "notices"), item(texts[1], "n1", "notices")]
    banks = Banks.of([SPAM, NOTICES, *notices, *(item(text, f"i{place}") for place, text in enumerate(texts))])
    first = KnownTexts(engine, SETTINGS, lambda: TIME_MS)
    first.replace(banks.entries())
    first.change([item(texts[5], "late")])
    assert first.fingerprints().computed == 9
    banks = banks.after(
        [
            item(texts[2], "i3"),
            item(texts[4], "i4", similarity=0.9),
            BankItem(bank="spam", item="i5", removed=True),
            Bank(bank="notices", removed=True),
            Bank(bank="notices", action="deny"),
            notices[1],
        ]
    )
    (large, small) = first.fingerprints().parts
    second = KnownTexts(
        engine, SETTINGS, lambda: TIME_MS, load_cache=lambda: ItemFingerprints.concatenate([large, small, large])
    )
    second.replace(banks.entries())
    anew = KnownTexts(engine, SETTINGS, lambda: TIME_MS)
    anew.replace(banks.entries())
    assert (second.fingerprints().computed, len(second)) == (3, len(anew))
    assert matches_of(second, *texts) == matches_of(anew, *texts)


def test_what_was_computed_earlier_is_asked_for_once(engine: Engine) -> None:
    """When the first items come; an allowed item keeps the facts that its articles must have."""
    scheme = replace(SCHEME, slots=True)
    settings = replace(SETTINGS, scheme=scheme, slot_conflicts_max=0)
    slotted = new_engine(chosen_engine("auto", scheme, LEXICON).name, scheme, LEXICON, sketched=True, parts=False)
    first = KnownTexts(slotted, settings, lambda: TIME_MS)
    notice = f"{written(12)} pay the fee of 250 to the account 4711 before Friday {written(13)}"
    entries: list[Entry] = [NOTICES, item(notice, "fee", "notices")]
    first.change(entries)
    times: list[int] = []

    def earlier() -> ItemFingerprints:
        times.append(1)
        return ItemFingerprints.concatenate(first.fingerprints().parts)

    second = KnownTexts(slotted, settings, lambda: TIME_MS, load_cache=earlier)
    second.change([NOTICES])
    second.change(entries)
    second.change([item(written(70), "other", "notices")])
    assert (len(times), second.fingerprints().computed) == (1, 1)
    assert found(second, notice) == [("fee", "equal")]
    assert found(second, notice.replace("4711", "9823")) == []


@pytest.mark.parametrize("small_max", [0, 3, 1_000])
def test_random_changes_leave_what_a_new_process_would_hold(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, small_max: int
) -> None:
    """Whichever of the two indexes an item is in."""
    monkeypatch.setattr(known_texts, "_SMALL_LIMIT_MIN", small_max)
    drawn = random.Random(small_max)
    texts = [written(100 + number) for number in range(6)]
    followed, banks = KnownTexts(engine, SETTINGS, lambda: TIME_MS), Banks.of([SPAM, NOTICES])
    followed.replace(banks.entries())
    for _ in range(40):
        bank, name = drawn.choice(["spam", "notices"]), f"i{drawn.randrange(4)}"
        text, state = drawn.choice(texts), drawn.random()
        entry = item(text, name, bank, removed=state < 0.2, enabled=state < 0.9)
        banks = banks.after([entry])
        followed.change([entry])
        anew = KnownTexts(engine, SETTINGS, lambda: TIME_MS)
        anew.replace(banks.entries())
        assert matches_of(followed, *texts) == matches_of(anew, *texts)
        assert len(followed) == len(anew)


def test_nothing_depends_on_the_batch(known: KnownTexts) -> None:
    """Together or alone, an article repeats the same."""
    texts = [written(40 + number) for number in range(8)]
    known.change([SPAM, *(item(text, f"i{place}") for place, text in enumerate(texts[:4]))])
    asked = [*(edited(text, 2) for text in texts), f"{texts[0]} {texts[1]}", texts[2]]
    assert matches_of(known, *asked) == [matches_of(known, text)[0] for text in asked]


def test_copies_are_found_and_others_are_not(known: KnownTexts) -> None:
    """Of copies that are 0.85 alike nearly all."""
    items = [written(1_000 + number, 80) for number in range(100)]
    known.change([SPAM, *(item(text, f"i{place}") for place, text in enumerate(items))])
    copies = [edited(text, 1, place) for place, text in enumerate(items)]
    hits = [[match.item for match in matches] for matches in matches_of(known, *copies)]
    assert sum(hit == [f"i{place}"] for place, hit in enumerate(hits)) >= 98
    assert not any(matches_of(known, *(written(5_000 + number, 80) for number in range(100))))


def test_without_sketches_there_are_no_banks(engine: Engine) -> None:
    """The sentence says what to set."""
    plain = replace(SETTINGS, verify=False, lane1=False)
    with pytest.raises(BankError, match=r"judge\.verify"):
        KnownTexts(engine, plain, lambda: TIME_MS)


def test_versions_without_matches_stay_as_they_are(known: KnownTexts) -> None:
    """One that is asked about again loses those that no longer hold."""
    text = written(50)
    known.change([SPAM, item(text)])
    fingerprints = known.engine.fingerprint([text, written(51)])
    versions: list[Version] = BUILDER.versions(
        [Article("a", text), Article("b", written(51))],
        [ArrivalTime(TIME_MS, 0), ArrivalTime(TIME_MS, 1)],
        fingerprints,
    )
    matched = known.with_matches(versions)
    assert matched[1] is versions[1]
    known.change([BankItem(bank="spam", item="offer", removed=True)])
    assert known.with_matches(matched)[0].record.bank_matches is None
    assert known.matches([]).matches == []
