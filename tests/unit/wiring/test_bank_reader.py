"""What follows the banks of a run while they cannot be used."""

from pathlib import Path

from consumer.banks.bank import Bank, BankItem, encode_entry
from consumer.banks.known_texts import BanksUnreadable, KnownTexts
from consumer.files.bank_file import BankFile
from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.settings import JudgeSettings
from consumer.model.hooks import Hooks
from consumer.wiring.banks import BankReader
from consumer.workers.engines import built_engine, chosen_engine
from consumer.workers.word_files import load_lexicon
from storage.files import FileWriting
from tests.builders import TIME_MS


def test_entries_that_contradict_the_banks_are_reported_at_every_look(tmp_path: Path) -> None:
    """Once they are mended, they count: none is taken for read."""
    lexicon, scheme = load_lexicon(), Scheme(name="jieba-tfidf/3")
    settings = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="", scheme=scheme, similarity_min=0.73)
    engine = built_engine(chosen_engine("auto", scheme, lexicon).name, scheme, lexicon, sketched=True, parts=False)
    known = KnownTexts(engine, settings, lambda: TIME_MS)
    bank = encode_entry(Bank(bank="spam", action="deny")) + b"\n"
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
