"""Known texts on every store: what is found when a record is created stays, and what a bank allows is never flagged."""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from consumer.banks.bank import Bank, BankItem
from consumer.judge.attempt import BankMatcher
from consumer.judge.detector import Detector
from consumer.model.verdict import BankMention, Verdict
from storage.interface import Store
from storage.records import ALLOW, DENY, BankMatch, StoredVersion, Version, id_hash
from tests.builders import TIME_MS
from tests.protocol.articles import FAR, LEFT, MIDDLE, SETTINGS, make_article
from tests.stored_texts import StoreOfTexts

SPAM = BankMatch("spam", "offer", DENY, "part", 0.8125)
NOTICE = BankMatch("notices", "closure", ALLOW, "equal", 1.0)


def matching(*matches: BankMatch) -> BankMatcher:
    """Return a matcher that finds the same in every article."""

    def matcher(versions: Sequence[Version]) -> list[Version]:
        return [
            version._replace(record=msgspec.structs.replace(version.record, bank_matches=matches or None))
            for version in versions
        ]

    return matcher


def judged(store: Store, versions: Sequence[Version], *matches: BankMatch) -> list[Verdict]:
    """Judge versions in one batch, of which each repeats these."""
    detector = Detector(store, SETTINGS, lambda: TIME_MS, with_bank_matches=matching(*matches))
    return [event.verdict for event in detector.judge(versions)]


@pytest.fixture
def article(request: pytest.FixtureRequest) -> Callable[..., Version]:
    """Return what makes an article that is near no article of another test."""
    run = request.node.name
    offset = int.from_bytes(id_hash(run)[:4]) << 32

    def made(number: int, bits: int = LEFT) -> Version:
        return make_article(number, offset | bits, article_id=f"{run} {number}")

    return made


def test_a_match_is_in_the_record_and_in_the_verdict(store: Store, article: Callable[..., Version]) -> None:
    """Of a flag, too: to deny informs, and changes no outcome."""
    first, copy = article(0), article(1)
    assert judged(store, [first], SPAM)[0].outcome == "unique"
    (flag,) = judged(store, [copy], SPAM)
    assert flag.outcome == "duplicate"
    assert flag.banks == (BankMention(bank="spam", item="offer", action="deny", form="part", similarity=0.8125),)
    (stored,) = store.read([copy.reference])
    assert stored is not None
    assert stored.record.bank_matches == (SPAM,)


def test_the_first_to_create_a_record_decides(store: Store, article: Callable[..., Version]) -> None:
    """A newer bank changes no verdict: neither that of a replay, nor that of a version which nobody has judged yet."""
    original, copy, waiting = article(0), article(1), article(2)
    judged(store, [original])
    before = judged(store, [copy])
    assert judged(store, [copy], NOTICE) == before
    # Its creator ended before it judged.
    store.create([waiting])
    assert judged(store, [waiting], NOTICE)[0].outcome == "duplicate"


def test_what_a_bank_allows_is_never_flagged(store: Store, article: Callable[..., Version]) -> None:
    """Alone, in one batch with its original, and after others have repeated it; deny is reported beside it."""
    original, allowed, later = article(0), article(1), article(2)
    judged(store, [original])
    (verdict,) = judged(store, [allowed], NOTICE, SPAM)
    assert verdict.outcome == "unique"
    assert msgspec.to_builtins(verdict.banks)[0]["action"] == "allow"
    assert len(msgspec.to_builtins(verdict.banks)) == 2
    assert judged(store, [later])[0].outcome == "duplicate"


def test_what_is_allowed_is_kept_among_copies_of_a_known_original(
    store: Store, article: Callable[..., Version]
) -> None:
    """A judge that remembers an original takes its copies for duplicates without looking them up."""
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    for number in range(3):
        detector.judge([article(number)])
    detector.with_bank_matches = matching(NOTICE)
    assert detector.judge([article(3)])[0].verdict.outcome == "unique"


def test_what_is_allowed_is_claimed_by_nothing(store: Store, article: Callable[..., Version]) -> None:
    """A version that waits for its verdict is not taken for a duplicate by an earlier near one."""
    early, waiting = article(0, MIDDLE), article(1)
    allowed = matching(NOTICE)([waiting])
    store.create(allowed)
    store.add([version.record for version in allowed])
    assert judged(store, [early])[0].outcome == "unique"
    (stored,) = store.read([waiting.reference])
    assert stored is not None
    assert stored.verdict is None
    assert judged(store, [waiting])[0].outcome == "unique"


def test_a_query_says_what_would_be_said(store: Store, article: Callable[..., Version]) -> None:
    """And names no original of what a bank allows."""
    original, asked = article(0), article(1)
    judged(store, [original])

    def query(*matches: BankMatch) -> tuple[int, list[str]]:
        detector = Detector(store, SETTINGS, lambda: TIME_MS, with_bank_matches=matching(*matches))
        (result,) = detector.query([asked])
        return len(result.matches), [mention.bank for mention in result.banks]

    assert query(SPAM) == (1, ["spam"])
    assert query(NOTICE) == (0, ["notices"])
    assert query() == (1, [])


def test_records_without_matches_have_the_bytes_of_before(store: Store, article: Callable[..., Version]) -> None:
    """And their verdicts have no member more."""
    (event,) = Detector(store, SETTINGS, lambda: TIME_MS).judge([article(0, FAR)])
    assert b"banks" not in event.encoded
    entries = [entry for entry in store.history(id_hash(event.verdict.id)) if isinstance(entry, StoredVersion)]
    assert [entry.record.bank_matches for entry in entries] == [None]


def test_stored_articles_are_looked_up_and_scanned(store: Store, request: pytest.FixtureRequest) -> None:
    """A kept article, one that contains the item, and a flagged copy, which only the scan finds."""
    seed = id_hash(request.node.name).hex()
    offer, around = (
        " ".join(f"{seed[place : place + 3]}{name}{place}" for place in range(29)) for name in ("tar", "mel")
    )
    texts = StoreOfTexts(store=store)
    names = {name: f"{request.node.name} {name}" for name in ("equal", "copy", "part")}
    texts.judge({names["equal"]: offer, names["copy"]: offer, names["part"]: f"{around} {offer}"})
    entries = Bank(bank="spam", action="deny"), BankItem(bank="spam", item="offer", text=offer)
    looked_up = {match.stored.record.id: match.matches[0].form for match in texts.look_up(*entries).found}
    assert looked_up == {names["equal"]: "equal", names["part"]: "part"}
    assert texts.scan(*entries)[0].keys() == set(names.values())
