"""Busy items: which bank matches are withheld, what is counted, and when an item is busy no longer."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from consumer.banks.bank import Bank, BankItem, Entry
from consumer.banks.busy_items import BankItemsCounted, BankMatchesWithheld, BusyItems, BusyLimit
from consumer.banks.item_fingerprints import entry_digest
from consumer.banks.known_texts import KnownTexts
from consumer.fingerprint import BlockPlan, Engine, Scheme
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import BankMention, Verdict
from consumer.text.timestamps import rfc3339
from consumer.workers.engines import chosen_engine, new_engine
from consumer.workers.word_files import load_lexicon
from tests.builders import TIME_MS

LEXICON = load_lexicon()
SCHEME = Scheme(name="jieba-tfidf/3")
SETTINGS = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="", scheme=SCHEME, similarity_min=0.73)
SPAM, NOTICES = Bank(bank="spam", action="deny"), Bank(bank="notices", action="allow")
OFFER = BankItem(bank="spam", item="offer", text="Win a ferry ticket now")
OTHER = BankItem(bank="spam", item="other", text="Tickets at half the price")
CLOSURE = BankItem(bank="notices", item="closure", text="The office is closed today")
DEFAULT = BusyLimit(0.01, 1_000)


@pytest.fixture(scope="module")
def engine() -> Engine:
    """Return the engine of a run."""
    return new_engine(chosen_engine("auto", SCHEME, LEXICON).name, SCHEME, LEXICON, sketched=True, parts=False)


@pytest.fixture
def known(engine: Engine) -> KnownTexts:
    """Return a process that holds two banks."""
    known = KnownTexts(engine, SETTINGS, lambda: TIME_MS)
    known.change([SPAM, NOTICES, OFFER, OTHER, CLOSURE])
    return known


class Counting:
    """Busy items, and what they report."""

    def __init__(self, known: KnownTexts, limit: BusyLimit = DEFAULT, *, withholds: bool = True) -> None:
        self.known = known
        self.reports: list[object] = []
        self.busy = BusyItems(known, limit, self.reports.append, withholds=withholds)

    def judged(self, verdicts: Sequence[Verdict]) -> list[bool]:
        """Count a batch that is committed; return what was withheld."""
        withheld = self.busy.withheld(verdicts)
        self.busy.commit()
        return withheld

    def change(self, *entries: Entry) -> None:
        """Change the banks, as what follows them does."""
        self.known.change(entries)
        self.busy.review()

    @property
    def counted(self) -> BankItemsCounted:
        """Return what was reported last of the items."""
        return [each for each in self.reports if isinstance(each, BankItemsCounted)][-1]

    @property
    def withheld(self) -> dict[str, int]:
        """Return how many were reported as withheld, by bank."""
        total: dict[str, int] = {}
        for each in self.reports:
            if isinstance(each, BankMatchesWithheld):
                for bank, count in each.by_bank.items():
                    total[bank] = total.get(bank, 0) + count
        return total


@pytest.fixture
def counting(known: KnownTexts) -> Counting:
    """Return busy items with the default settings."""
    return Counting(known)


def article(*items: BankItem) -> Verdict:
    """Return the verdict on an article that repeats these items."""
    mentions = tuple(
        BankMention(
            bank=item.bank,
            item=item.item,
            action="allow" if item.bank == NOTICES.bank else "deny",
            form="equal",
            similarity=1.0,
        )
        for item in items
    )
    return Verdict(
        id="a",
        version="ab",
        outcome="unique",
        arrived_at="2026-01-02T03:04:05.678Z",
        decided_at="2026-01-02T03:04:06.789Z",
        banks=mentions or msgspec.UNSET,
    )


def busy_offer(counting: Counting) -> None:
    """Make the offer busy."""
    counting.judged([article(OFFER)] * 11)
    assert counting.counted.busy == {("spam", "deny"): 1}


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the log, and begin it anew."""
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


def test_more_than_ten_of_the_first_thousand_are_too_many(counting: Counting, caplog: pytest.LogCaptureFixture) -> None:
    """Within one batch, too; the one warning has the figures and the commands."""
    assert counting.judged([article(OFFER)] * 6 + [article()] * 100 + [article(OFFER)] * 4) == [False] * 110
    assert counting.judged([article()] * 80 + [article(OFFER)] * 3) == [False] * 80 + [True] * 3
    assert counting.judged([article(OFFER)]) == [True]
    assert counting.withheld == {"spam": 4}
    (warning,) = logged(caplog)
    assert "item offer of the bank spam matches too much: 11 of the last 191 articles" in warning
    assert "withheld" in warning
    assert "dupwatch bank confirm spam offer." in warning
    assert warning.endswith("dupwatch bank disable spam offer")


def test_later_the_share_is_of_the_recent_articles(counting: Counting) -> None:
    """Of 1,900 articles nineteen are not too many, and twenty are; half of that counts on."""
    one_percent = ([article()] * 99 + [article(OFFER)]) * 19
    assert not any(counting.judged(one_percent))
    assert counting.judged([article(OFFER)]) == [True]
    other = Counting(counting.known)
    assert not any(other.judged(one_percent + [article()] * 100))
    assert other.judged([article(OFFER)] * 2) == [False, True], "nine of a thousand were remembered"


@pytest.mark.parametrize(
    ("items", "is_withheld"),
    [((OFFER,), True), ((OFFER, CLOSURE), True), ((OFFER, OTHER), False), ((OTHER, OFFER), False), ((CLOSURE,), False)],
)
def test_an_event_is_withheld_only_if_all_it_denies_is_busy(
    counting: Counting, items: tuple[BankItem, ...], *, is_withheld: bool
) -> None:
    """What is allowed beside it makes no difference."""
    busy_offer(counting)
    assert counting.judged([article(*items)]) == [is_withheld]
    assert counting.withheld == {"spam": 1 + is_withheld}


def test_two_busy_items_withhold_one_event(counting: Counting) -> None:
    """It counts once, for the bank of the first."""
    leak = BankItem(bank="leaks", item="exam", text="Question one of the exam")
    counting.change(Bank(bank="leaks", action="deny"), leak)
    assert counting.judged([article(leak, OFFER)] * 12) == [False] * 10 + [True] * 2
    assert counting.withheld == {"leaks": 2}
    assert counting.counted.busy == {("leaks", "deny"): 1, ("spam", "deny"): 1}


def test_what_allows_goes_on_and_is_reported(counting: Counting, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is withheld because of it."""
    assert not any(counting.judged([article(CLOSURE)] * 20))
    assert counting.counted.busy == {("notices", "allow"): 1}
    assert counting.withheld == {}
    (warning,) = logged(caplog)
    assert "20 of" not in warning
    assert "11 of the last 11 articles. These articles are never flagged." in warning


def test_a_run_without_bank_matches_withholds_none(known: KnownTexts, caplog: pytest.LogCaptureFixture) -> None:
    """The item is busy all the same, and the warning promises nothing."""
    counting = Counting(known, withholds=False)
    assert not any(counting.judged([article(OFFER)] * 20))
    assert counting.counted.busy == {("spam", "deny"): 1}
    (warning,) = logged(caplog)
    assert "withheld" not in warning


def test_a_batch_that_is_judged_again_counts_once(counting: Counting, caplog: pytest.LogCaptureFixture) -> None:
    """Each time the same events are withheld, and nothing is reported before the commit."""
    counting.judged([article(OFFER)] * 5)
    batch = [article(), *[article(OFFER)] * 6, article(OFFER, OTHER)]
    reported = list(counting.reports)
    expected = [False] * 6 + [True, False]
    for _ in range(4):
        assert counting.busy.withheld(batch) == expected
        assert counting.reports == reported
        assert not logged(caplog)
    counting.busy.commit()
    counting.busy.commit()
    assert counting.withheld == {"spam": 1}
    assert "11 of the last 12 articles" in logged(caplog)[0]


def test_retractions_are_no_articles(counting: Counting, caplog: pytest.LogCaptureFixture) -> None:
    """They have no text that could match."""
    retraction = msgspec.structs.replace(article(), version=None, outcome="retracted")
    counting.judged([retraction] * 1_000 + [article(OFFER)] * 11)
    assert "11 of the last 11 articles" in logged(caplog)[0]


CHANGES: list[tuple[Entry, ...]] = [
    (msgspec.structs.replace(OFFER, confirmed=True),),
    (msgspec.structs.replace(OFFER, text="Win a harbour ticket now"),),
    (msgspec.structs.replace(OFFER, enabled=False),),
    (msgspec.structs.replace(OFFER, until=rfc3339(TIME_MS - 1)),),
    (BankItem(bank="spam", item="offer", removed=True),),
    (msgspec.structs.replace(SPAM, enabled=False),),
    (Bank(bank="spam", removed=True), Bank(bank="spam", action="allow"), OFFER),
]


@pytest.mark.parametrize("entries", CHANGES)
def test_a_change_ends_it(counting: Counting, entries: tuple[Entry, ...], caplog: pytest.LogCaptureFixture) -> None:
    """With the next look at the banks, whether articles come or not; one line says so."""
    busy_offer(counting)
    logged(caplog)
    counting.change(*entries)
    assert counting.counted.busy == {}
    (line,) = logged(caplog)
    assert line.startswith("The item offer of the bank spam no longer matches too much: it was confirmed, changed")
    counting.busy.review()
    assert not logged(caplog)


def test_an_item_that_ends_is_no_longer_busy(engine: Engine) -> None:
    """At its time, without an entry that says so."""
    times = [TIME_MS]
    known = KnownTexts(engine, SETTINGS, lambda: times[0])
    known.change([SPAM, msgspec.structs.replace(OFFER, until=rfc3339(TIME_MS + 10))])
    counting = Counting(known)
    busy_offer(counting)
    times[0] += 9
    counting.busy.review()
    assert counting.counted.busy == {("spam", "deny"): 1}
    times[0] += 1
    counting.busy.review()
    assert counting.counted.busy == {}


def test_a_confirmed_item_is_never_busy(counting: Counting) -> None:
    """From the moment on at which the process knows it; without the confirmation it counts from 0."""
    busy_offer(counting)
    counting.known.change([msgspec.structs.replace(OFFER, confirmed=True)])
    assert counting.judged([article(OFFER)] * 50) == [False] * 50
    counting.busy.review()
    assert counting.judged([article(OFFER)] * 50) == [False] * 50
    counting.change(OFFER)
    assert counting.judged([article(OFFER)] * 11) == [False] * 10 + [True]


def test_another_text_counts_from_0(counting: Counting) -> None:
    """What matched the one before says nothing about it."""
    busy_offer(counting)
    counting.change(msgspec.structs.replace(OFFER, text="Win a harbour ticket now"))
    assert counting.judged([article(OFFER)] * 11) == [False] * 10 + [True]


def test_items_that_are_not_held_are_withheld_but_not_shown(
    counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    """Articles that were judged before an item was switched off; nobody has to be told to switch it off."""
    counting.change(msgspec.structs.replace(OFFER, enabled=False))
    assert counting.judged([article(OFFER)] * 12) == [False] * 10 + [True] * 2
    assert counting.judged([article(OFFER)]) == [True]
    assert counting.counted.busy == {}
    assert not logged(caplog)


def test_what_stops_matching_is_no_longer_busy(counting: Counting, caplog: pytest.LogCaptureFixture) -> None:
    """Once it is below a quarter of the share of a full window."""
    counting.judged([article(OFFER)] * 40 + [article()] * 960)
    logged(caplog)
    quiet = [article()] * 500
    spans = 0
    while counting.counted.busy:
        counting.judged(quiet)
        spans += 1
        assert spans < 20
    # 40 of 2,000, then 20, 10, 5 and 2: five is a quarter.
    assert spans == 2 * 5
    assert logged(caplog) == [
        "The item offer of the bank spam no longer matches too much: 2 of the last 2000 articles."
    ]
    assert counting.judged([article(OFFER)]) == [False]


@pytest.mark.parametrize("share", [0.006, 0.0075, 0.01])
def test_it_does_not_come_and_go(counting: Counting, share: float, caplog: pytest.LogCaptureFixture) -> None:
    """An item around the limit becomes busy twice at most in 300,000 articles."""
    drawn = random.Random(1)
    hit, miss = article(OFFER), article()
    for _ in range(300):
        counting.judged([hit if drawn.random() < share else miss for _ in range(1_000)])
    assert len([line for line in logged(caplog) if "matches too much:" in line and "no longer" not in line]) <= 2


def test_the_counts_are_bounded(known: KnownTexts) -> None:
    """By twenty items for each article of the minimum, whatever verdicts name."""
    counting = Counting(known, BusyLimit(0.1, 100))
    for batch in range(50):
        verdicts = [
            article(*(BankItem(bank="spam", item=f"i{batch}-{number}-{place}") for place in range(10)))
            for number in range(20)
        ]
        assert not any(counting.judged(verdicts))
        assert len(counting.busy._matches) <= 20 * 100


def test_items_that_never_matched_are_counted(counting: Counting) -> None:
    """Of those that are held now; a busy one has matched, and so has a confirmed one."""
    counting.busy.review()
    assert counting.counted.unmatched == 3
    counting.judged([article(OFFER)] * 20)
    assert counting.counted.unmatched == 2
    counting.judged([article(OFFER, CLOSURE)])
    assert counting.counted.unmatched == 1
    more = BankItem(bank="spam", item="more", text="Letters enough for it", confirmed=True)
    counting.change(BankItem(bank="spam", item="offer", removed=True), more)
    assert counting.counted.unmatched == 2
    counting.judged([article(more), article(OFFER)])
    assert counting.counted.unmatched == 1


class AskedEngine:
    """An engine that asks about items whenever it computes something, as other threads may."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.ask: Callable[[], object] = lambda: None
        self.answers: list[object] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the engine has
        self.answers.append(self.ask())
        return getattr(self._engine, name)


def test_items_are_held_as_before_while_banks_change(engine: Engine) -> None:
    """An item that is removed, one that is added, and one whose row is about to be another item's."""
    asked: Any = AskedEngine(engine)
    known = KnownTexts(asked, SETTINGS, lambda: TIME_MS)
    known.change([SPAM, OFFER, OTHER])
    items = "offer", "other", "more"
    before = [known.active_item("spam", item, "deny") for item in items]
    asked.answers.clear()
    asked.ask = lambda: [known.active_item("spam", item, "deny") for item in items]
    more = BankItem(bank="spam", item="more", text="Letters enough for it", confirmed=True)
    known.change([BankItem(bank="spam", item="offer", removed=True), more])
    assert len(asked.answers) >= 2
    assert all(answer == before for answer in asked.answers)
    assert [known.active_item("spam", item, "deny") for item in items] == [
        None,
        before[1],
        (entry_digest(more, "deny"), True),
    ]
