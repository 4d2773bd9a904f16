"""What follows the banks of a run while they cannot be used."""

from pathlib import Path

import pytest

from consumer.banks.bank import Bank, BankItem, Entry, encode_entry
from consumer.banks.known_texts import BanksUnreadable, KnownTexts
from consumer.files.bank_cache import BankCache, CacheIdentity
from consumer.files.bank_file import BankFile
from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.settings import JudgeSettings
from consumer.model.hooks import Hooks, Outage
from consumer.wiring.banks import BankReader, CacheWriter
from consumer.workers.engines import chosen_engine, new_engine
from consumer.workers.word_files import load_lexicon
from storage.files import WriteOptions
from tests.builders import TIME_MS

LEXICON, SCHEME = load_lexicon(), Scheme(name="jieba-tfidf/3")
SETTINGS = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="", scheme=SCHEME, similarity_min=0.73)
ENGINE = new_engine(chosen_engine("auto", SCHEME, LEXICON).name, SCHEME, LEXICON, sketched=True, parts=False)
BANK = Bank(bank="spam", action="deny")
SPAM = encode_entry(BANK) + b"\n"
NOTICES = encode_entry(Bank(bank="notices", action="allow")) + b"\n"
OFFER = encode_entry(BankItem(bank="spam", item="offer", text="Win a ferry ticket now")) + b"\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file with one bank."""
    path = tmp_path / "banks.jsonl"
    path.write_bytes(SPAM)
    return path


@pytest.fixture
def known() -> KnownTexts:
    """Return the known texts of a run without banks."""
    return KnownTexts(ENGINE, SETTINGS, lambda: TIME_MS)


def reader_of(path: Path, known: KnownTexts, faults: list[str]) -> BankReader:
    """Return what keeps ``known`` as the file says, and adds its faults to ``faults``."""
    hooks = Hooks()
    hooks.on(BanksUnreadable, lambda unreadable: faults.append(unreadable.reason))
    return BankReader(BankFile(path, WriteOptions(durable=False)), known, hooks)


def test_entries_that_contradict_the_banks_are_reported_at_every_look(path: Path, known: KnownTexts) -> None:
    """Once they are mended, they count: none is taken for read."""
    faults: list[str] = []
    reader = reader_of(path, known, faults)
    reader.read()
    path.write_bytes(OFFER)
    for _ in range(3):
        reader.refresh()
    assert ["no bank 'spam'" in fault for fault in faults] == [True] * 3
    assert len(known) == 0
    path.write_bytes(SPAM + OFFER)
    reader.refresh()
    assert (len(known), len(faults)) == (1, 3)


@pytest.mark.parametrize(
    ("appended", "fault"),
    [
        (Bank(bank="spam", action="allow"), "has the action 'deny', which cannot be changed"),
        (BankItem(bank="casino", item="offer", text="Win a ferry ticket now"), "no bank 'casino'"),
        (BankItem(bank="notices", item="a", text="The road is closed", similarity=0.5), "at least 0.9"),
    ],
)
def test_an_appended_entry_that_keeps_a_run_from_starting_changes_no_run(
    path: Path, known: KnownTexts, appended: Entry, fault: str
) -> None:
    """It is reported until it is removed; nothing is allowed by it, and valid entries with it wait."""
    path.write_bytes(SPAM + NOTICES + OFFER)
    faults: list[str] = []
    reader = reader_of(path, known, faults)
    reader.read()
    other = encode_entry(BankItem(bank="spam", item="other", text="Win two ferry tickets")) + b"\n"
    with path.open("ab") as file:
        file.write(encode_entry(appended) + b"\n" + other)
    for _ in range(2):
        reader.refresh()
    assert [fault in each for each in faults] == [True] * 2
    assert len(known) == 1
    assert known.active_item("spam", "offer", "deny") is not None
    path.write_bytes(SPAM + NOTICES + OFFER + other)
    reader.refresh()
    assert (len(known), len(faults)) == (2, 2)


def test_items_that_are_gone_at_once_are_named_in_the_log(
    path: Path, known: KnownTexts, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that was cut short is as valid as one that somebody shortened. One that is empty changes nothing."""
    faults: list[str] = []
    other = encode_entry(BankItem(bank="spam", item="other", text="Win two ferry tickets")) + b"\n"
    path.write_bytes(SPAM + OFFER + other)
    reader = reader_of(path, known, faults)
    reader.read()
    path.write_bytes(SPAM + OFFER)
    reader.refresh()
    assert (len(known), faults) == (1, [])
    assert "fewer active items: 1 instead of 2" in caplog.text
    path.write_bytes(b"")
    for _ in range(2):
        reader.refresh()
    assert (len(known), ["has become empty" in fault for fault in faults]) == (1, [True, True])
    caplog.clear()
    path.write_bytes(SPAM + OFFER + other)
    reader.refresh()
    assert (len(known), len(faults)) == (2, 2)
    assert "fewer items" not in caplog.text


def test_a_run_whose_banks_lag_is_not_ready(path: Path, known: KnownTexts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while one reading takes that long, as of a million new items; the next one ends it."""
    hooks, reported, now_s = Hooks(), list[Outage](), 0.0
    hooks.on(Outage, reported.append)
    reader = BankReader(BankFile(path, WriteOptions(durable=False)), known, hooks, lambda: now_s)
    reader.refresh()
    watched: list[list[Outage]] = []
    read = reader.read

    def reading() -> None:
        nonlocal now_s
        for pause_s in (29.0, 2.0):
            now_s += pause_s
            reported.clear()
            reader.check_lag()
            watched.append(list(reported))
        read()

    monkeypatch.setattr(reader, "read", reading)
    reader.refresh()
    assert [len(each) for each in watched] == [0, 1]
    assert (watched[1][0].part, "31 s behind" in str(watched[1][0].reason)) == ("banks", True)
    assert reported[-1] == Outage("banks", "reader", None)
    reported.clear()
    reader.check_lag()
    assert reported == []


def test_the_cache_is_written_when_one_item_in_sixteen_was_computed(tmp_path: Path) -> None:
    """After the start, and after enough changes; a process that finds all in it writes nothing."""
    identity = CacheIdentity({}, bytes(32))

    def started() -> tuple[KnownTexts, CacheWriter]:
        cache = BankCache(tmp_path, identity, WriteOptions(durable=False))
        known = KnownTexts(ENGINE, SETTINGS, lambda: TIME_MS, load_cache=cache.load)
        return known, CacheWriter(cache, known)

    def items(numbers: range) -> list[BankItem]:
        return [BankItem(bank="spam", item=f"i{number}", text=f"Win ferry ticket {number}") for number in numbers]

    known, writer = started()
    writer.write_if_due()
    assert list(tmp_path.iterdir()) == []
    known.change([BANK, *items(range(64))])
    writer.write_if_due()
    (path,) = tmp_path.iterdir()
    before = path.stat()
    known.change(items(range(64, 68)))
    writer.write_if_due()
    assert path.stat() == before
    known.change(items(range(68, 69)))
    writer.write_if_due()
    assert path.stat() != before
    before = path.stat()
    known, writer = started()
    known.change([BANK, *items(range(69))])
    writer.write_if_due()
    assert (len(known), known.fingerprints().computed, path.stat()) == (69, 0, before)
