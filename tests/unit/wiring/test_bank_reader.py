"""What follows the banks of a run while they cannot be used."""

from pathlib import Path

from consumer.banks.bank import Bank, BankItem, encode_entry
from consumer.banks.known_texts import BanksUnreadable, KnownTexts
from consumer.files.bank_cache import BankCache, CacheIdentity
from consumer.files.bank_file import BankFile
from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.settings import JudgeSettings
from consumer.model.hooks import Hooks
from consumer.wiring.banks import BankReader, CacheWriter
from consumer.workers.engines import built_engine, chosen_engine
from consumer.workers.word_files import load_lexicon
from storage.files import FileWriting
from tests.builders import TIME_MS

LEXICON, SCHEME = load_lexicon(), Scheme(name="jieba-tfidf/3")
SETTINGS = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="", scheme=SCHEME, similarity_min=0.73)
ENGINE = built_engine(chosen_engine("auto", SCHEME, LEXICON).name, SCHEME, LEXICON, sketched=True, parts=False)
SPAM = Bank(bank="spam", action="deny")


def test_entries_that_contradict_the_banks_are_reported_at_every_look(tmp_path: Path) -> None:
    """Once they are mended, they count: none is taken for read."""
    known = KnownTexts(ENGINE, SETTINGS, lambda: TIME_MS)
    bank = encode_entry(SPAM) + b"\n"
    orphan = encode_entry(BankItem(bank="spam", item="offer", text="Win a ferry ticket now")) + b"\n"
    path = tmp_path / "banks.jsonl"
    path.write_bytes(bank)
    faults: list[str] = []
    hooks = Hooks()
    hooks.on(BanksUnreadable, lambda unreadable: faults.append(unreadable.why))
    reader = BankReader(BankFile(path, FileWriting(durable=False)), known, hooks)
    reader.read()
    path.write_bytes(orphan)
    for _ in range(3):
        reader.look()
    assert ["no bank 'spam'" in fault for fault in faults] == [True] * 3
    assert len(known) == 0
    path.write_bytes(bank + orphan)
    reader.look()
    assert (len(known), len(faults)) == (1, 3)


def test_the_cache_is_written_when_one_item_in_sixteen_was_computed(tmp_path: Path) -> None:
    """After the start, and after enough changes; a process that finds all in it writes nothing."""
    identity = CacheIdentity({}, bytes(32))

    def started() -> tuple[KnownTexts, CacheWriter]:
        cache = BankCache(tmp_path, identity, FileWriting(durable=False))
        known = KnownTexts(ENGINE, SETTINGS, lambda: TIME_MS, earlier=cache.load)
        return known, CacheWriter(cache, known)

    def items(numbers: range) -> list[BankItem]:
        return [BankItem(bank="spam", item=f"i{number}", text=f"Win ferry ticket {number}") for number in numbers]

    known, writer = started()
    writer.look()
    assert list(tmp_path.iterdir()) == []
    known.change([SPAM, *items(range(64))])
    writer.look()
    (path,) = tmp_path.iterdir()
    before = path.stat()
    known.change(items(range(64, 68)))
    writer.look()
    assert path.stat() == before
    known.change(items(range(68, 69)))
    writer.look()
    assert path.stat() != before
    before = path.stat()
    known, writer = started()
    known.change([SPAM, *items(range(69))])
    writer.look()
    assert (len(known), known.fingerprints().computed, path.stat()) == (69, 0, before)
