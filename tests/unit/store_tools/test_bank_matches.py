"""Which stored articles repeat items of banks: as a look-up finds them, and as a scan does."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from consumer.banks.bank import Bank, BankItem, Banks
from consumer.banks.known_texts import KnownTexts
from consumer.model.verdict import decode_verdict
from consumer.store_tools import bank_matches
from consumer.store_tools.bank_actions import allowed_flags, denied_articles
from consumer.store_tools.bank_matches import BankLookUp, StoredMatch, StoredMatches
from consumer.store_tools.bank_scan import member_counts
from consumer.store_tools.releases import Attribution, read_flagged, release
from storage.memory import MemoryStore
from tests.stored_texts import NOW_MS, SETTINGS, StoreOfTexts
from tests.unit.banks.test_known_texts import edited, written

UNFORGIVING = replace(SETTINGS, similarity_min=0.99, reach=3, one_bits_distance_max=2)
"""Only verbatim copies are flagged, and the judge looks no further."""
SPAM = Bank(bank="spam", action="deny")
NOTICES = Bank(bank="notices", action="allow")
OFFER = written(1, 100)


def item(text: str, name: str = "offer", bank: str = "spam", **more: object) -> BankItem:
    """Return an item."""
    return msgspec.convert({"bank": bank, "item": name, "text": text, **more}, BankItem)


def forms(found: StoredMatches | Sequence[StoredMatch]) -> dict[str, str]:
    """Return how the articles repeat the item that is named first, by id."""
    matches = found.found if isinstance(found, StoredMatches) else found
    return {match.stored.record.id: match.matches[0].form for match in matches}


@pytest.fixture
def filled() -> StoreOfTexts:
    """Kept articles that repeat an offer in each form, copies that are flagged, and others."""
    made = StoreOfTexts()
    longer = f"{written(2, 120)} {OFFER} {written(3, 120)}"
    made.judge({"equal": OFFER, "copy": OFFER, "part": longer, "copy of part": longer})
    made.judge({"other": written(4), "another": written(5)})
    return made


def test_kept_articles_are_looked_up(filled: StoreOfTexts) -> None:
    """Not those that were flagged; the most similar comes first."""
    found = filled.look_up(SPAM, item(OFFER))
    assert forms(found) == {"equal": "equal", "part": "part"}
    assert [match.matches[0].item for match in found.found] == ["offer", "offer"]
    assert found.found[0].similarity == 1.0
    assert (found.items, found.truncated, found.parts, found.without_text) == (1, False, True, 0)
    assert forms(filled.look_up(SPAM, item(written(9)))) == {}


def test_similar_articles_are_looked_up() -> None:
    """Down to the similarity of the item, which the judge's own threshold does not limit."""
    made = StoreOfTexts(UNFORGIVING)
    copies = {f"copy {number}": edited(OFFER, 2 * number, number) for number in range(1, 9)}
    made.judge(copies)
    found = made.look_up(SPAM, item(OFFER, similarity=0.5))
    assert forms(found) == forms(list(made.scan(SPAM, item(OFFER, similarity=0.5))[0].values()))
    assert len(found.found) == len(copies)
    similarities = [match.similarity for match in found.found]
    assert similarities == sorted(similarities, reverse=True)
    stricter = made.look_up(SPAM, item(OFFER, similarity=0.8))
    similar = {name for name, form in forms(stricter).items() if form == "similar"}
    assert similar == {match.stored.record.id for match in found.found if match.similarity >= 0.8}
    assert 0 < len(similar) < len(found.found)


def test_a_look_up_finds_nothing_that_a_scan_does_not(filled: StoreOfTexts) -> None:
    """And says the same of what it finds; the scan finds the flagged ones, too."""
    copies = {f"copy {number}": edited(OFFER, number, number) for number in range(1, 12)}
    filled.judge(copies)
    entries = (SPAM, item(OFFER), item(written(4), "fourth"))
    everything, counts = filled.scan(*entries)
    looked_up = {match.stored.record.id: match for match in filled.look_up(*entries).found}
    assert looked_up.items() <= everything.items()
    assert {"equal", "part", "copy", "copy of part", "other", *copies} == everything.keys()
    assert (counts.versions, counts.repeating, counts.without_text) == (17, 16, 0)


def test_what_is_no_longer_there_is_not_looked_up(filled: StoreOfTexts) -> None:
    """What was retracted or replaced, what is older than the window, and what has no verdict yet."""
    window_ms = SETTINGS.window_ms
    notice = written(6)
    filled.judge({"old": notice, "old part": f"{written(10)} {OFFER} {written(11)}"}, NOW_MS - window_ms - 1)
    filled.retract("equal")
    filled.judge({"part": written(7)})
    (waiting,) = filled.versions({"waiting": written(8)})
    filled.store.create([waiting])
    filled.store.add([waiting.record])
    found = filled.look_up(SPAM, item(OFFER), item(notice, "old"), item(written(8), "waiting"))
    assert forms(found) == {}
    everything, _ = filled.scan(SPAM, item(OFFER), item(notice, "old"), item(written(8), "waiting"))
    assert {"equal", "part", "old", "old part", "waiting"} <= everything.keys()


def test_items_that_do_not_count_find_nothing(filled: StoreOfTexts) -> None:
    """Those that are disabled or have ended, and those of a disabled bank."""
    ended = "2020-01-01T00:00:00.000Z"
    for entries in (
        (SPAM, item(OFFER, enabled=False)),
        (SPAM, item(OFFER, until=ended)),
        (msgspec.structs.replace(SPAM, enabled=False), item(OFFER)),
        (SPAM,),
    ):
        found = filled.look_up(*entries)
        assert (found.items, found.found) == (0, ())


def test_an_allowed_text_is_looked_up_as_a_whole() -> None:
    """It needs 0.9, and no article that contains it is allowed."""
    made = StoreOfTexts(UNFORGIVING)
    made.judge({"equal": OFFER, "near": edited(OFFER, 1), "far": edited(OFFER, 7), "part": f"{written(2)} {OFFER}"})
    assert forms(made.look_up(NOTICES, item(OFFER, bank="notices"))) == {"equal": "equal", "near": "similar"}
    assert forms(made.look_up(SPAM, item(OFFER))).keys() == {"equal", "near", "far", "part"}


def test_parts_need_anchors_and_texts() -> None:
    """Without them the look-up says so, and so does a scan of versions without a text."""
    longer = f"{written(2, 120)} {OFFER} {written(3, 120)}"
    without_anchors = StoreOfTexts(parts=False)
    without_anchors.judge({"part": longer})
    found = without_anchors.look_up(SPAM, item(OFFER))
    assert (forms(found), found.parts) == ({}, False)
    assert forms(list(without_anchors.scan(SPAM, item(OFFER))[0].values())) == {"part": "part"}
    without_texts = StoreOfTexts(keeps_texts=False)
    without_texts.judge({"equal": OFFER, "part": longer})
    found = without_texts.look_up(SPAM, item(OFFER))
    assert (forms(found), found.without_text) == ({"equal": "equal"}, 2)
    everything, counts = without_texts.scan(SPAM, item(OFFER))
    assert (set(everything), counts.without_text) == ({"equal"}, 2)


def test_limits_are_named(filled: StoreOfTexts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of articles that are returned, and of candidates that are read."""
    entries = (SPAM, item(OFFER), item(written(4), "fourth"))
    assert not filled.look_up(*entries, matches_max=3).truncated
    few = filled.look_up(*entries, matches_max=2)
    assert (len(few.found), few.truncated) == (2, True)
    monkeypatch.setattr(bank_matches, "_ITEMS_AT_ONCE", 1)
    assert forms(filled.look_up(*entries)) == {"equal": "equal", "part": "part", "other": "equal"}
    assert len(filled.look_up(*entries, matches_max=1).found) == 1


def test_candidates_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Similar ones and those that contain the item, each for itself."""
    monkeypatch.setattr(bank_matches, "CANDIDATES_MAX", 2)
    for made, texts in (
        (StoreOfTexts(UNFORGIVING, parts=False), [edited(OFFER, 3, number) for number in range(3)]),
        (StoreOfTexts(), [f"{written(40 + number, 120)} {OFFER} {written(50 + number, 120)}" for number in range(3)]),
    ):
        for number, text in enumerate(texts):
            made.judge({f"a{number}": text})
            found = made.look_up(SPAM, item(OFFER))
            assert (len(found.found), found.truncated) == (min(number + 1, 2), number == 2)


def test_an_article_may_have_the_name_of_an_item() -> None:
    """Versions of one id are never compared with each other."""
    made = StoreOfTexts(parts=False)
    made.judge({"spam/offer": OFFER})
    assert forms(made.look_up(SPAM, item(OFFER))) == {"spam/offer": "equal"}


def test_a_look_up_has_a_limit_of_items(filled: StoreOfTexts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large bank some are looked up, and the result says so."""
    monkeypatch.setattr(bank_matches, "ITEMS_MAX", 1)
    found = filled.look_up(SPAM, item(written(4), "fourth"), item(OFFER))
    assert (forms(found), found.items, found.truncated) == ({"other": "equal"}, 1, True)


def test_a_look_up_can_be_ended(filled: StoreOfTexts) -> None:
    """By what is called between its reads."""

    def end() -> None:
        raise TimeoutError

    look_up = BankLookUp(filled.opened, lambda: NOW_MS, end)
    with pytest.raises(TimeoutError):
        look_up.find(Banks.of([SPAM, item(OFFER)]))


def test_members_are_counted(filled: StoreOfTexts) -> None:
    """Flagged versions in force, for the kept one at the end of their chain."""
    filled.judge({"second copy": OFFER, "third copy": edited(OFFER, 2)})
    filled.retract("second copy")
    references = {
        match.stored.record.id: match.stored.record.reference for match in filled.look_up(SPAM, item(OFFER)).found
    }
    counted = list(member_counts(filled.store, frozenset(references.values())))[-1]
    assert {name: counted[reference] for name, reference in references.items()} == {"equal": 2, "part": 1}
    assert list(member_counts(MemoryStore(), frozenset())) == []


def test_flags_of_allowed_texts_can_be_released(filled: StoreOfTexts) -> None:
    """Those in force, and again those that the same person released for the same reason."""
    filled.judge({"second copy": OFFER})
    filled.retract("second copy")
    entries = (NOTICES, SPAM, item(OFFER), item(OFFER, "closure", "notices"))

    def flags(by: str = "Kim", reason: str | None = None) -> list[tuple[str, bool]]:
        found = filled.scan(*entries)[0].values()
        return [(flag.stored.record.id, flag.is_released) for flag in allowed_flags(found, by, reason)]

    assert flags() == [("copy", False)]
    (flag,) = allowed_flags(filled.scan(*entries)[0].values(), "Kim", None)
    assert flag.attribution == Attribution("Kim", "It repeats closure of the bank notices, which allows it.")
    release(filled.store, read_flagged(filled.store, flag.stored.record.reference), flag.attribution, lambda: NOW_MS)
    assert (flags(), flags("An Na"), flags(reason="another")) == ([("copy", True)], [], [])


def test_denied_articles_are_reported_unless_their_verdict_names_the_item(filled: StoreOfTexts) -> None:
    """Kept and flagged ones in force; a second report has the same bytes."""
    known = KnownTexts(filled.engine, SETTINGS, lambda: NOW_MS)
    known.replace([SPAM, item(OFFER)])
    filled._detector.with_bank_matches = known.with_matches
    filled.judge({"named": OFFER})
    filled.retract("copy of part")
    (waiting,) = filled.versions({"waiting": OFFER})
    filled.store.create([waiting])
    found = filled.scan(SPAM, NOTICES, item(OFFER), item(OFFER, "allowed", "notices"))[0]
    assert {"named", "waiting", "copy of part"} <= found.keys()
    reported = list(denied_articles(found.values()))
    assert sorted(article.stored.record.id for article in reported) == ["copy", "equal", "part"]
    assert {(article.mention.bank, article.mention.item) for article in reported} == {("spam", "offer")}
    verdicts = {article.stored.record.id: decode_verdict(article.stored.verdict or b"") for article in reported}
    assert verdicts["copy"].outcome == "duplicate"
    assert list(denied_articles(found.values())) == reported
