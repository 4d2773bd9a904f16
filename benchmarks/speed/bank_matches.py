"""How fast the stored articles that repeat items of banks are looked up, and which of them a look-up finds.

``python -m benchmarks.speed.bank_matches``. A store, by default on LMDB, is filled with articles without a text, whose
fingerprints are drawn from a model, and with articles that repeat items: edited copies of each, and two longer articles
that contain it. All of them are kept. One item is looked up, and then all of them together, without anything that was
computed before. A scan, which compares everything, says what there is to find.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import typer

from benchmarks.speed.harness import spread
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.ours import Dupwatch
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.banks.bank import Bank, BankItem, Banks
from consumer.banks.known_texts import KnownTexts
from consumer.config.loading import load_config
from consumer.fingerprint import Engine
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from consumer.store_tools.bank_matches import BankLookUp, ComparableStore, StoredMatch
from consumer.store_tools.bank_scan import ScanCounts, scan_store
from consumer.stress.made_texts import FeedText, make_feed
from consumer.wiring.components import common_hashes, engine, judge_settings, version_builder
from consumer.wiring.stores import opened_store, unstored_binding
from consumer.workers.word_files import load_lexicon
from storage.clock import now_ms
from storage.interface import Store

PART: Final = "bank_matches"
_BANK: Final = Bank(bank="known", action="deny", similarity=0.5)
_ITEM_CHARS: Final = 300
_AROUND_CHARS: Final = (800, 4_000)
_EDITS: Final = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.13)
"""Shares of the characters of an item that are others in a copy."""
_CLASSES: Final = ((0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01))
_SETTINGS: Final[dict[str, Any]] = {"judge": {"parts": True}, "rules": {"": {"flag": "never"}}}


class Filled(NamedTuple):
    """A store, and what it is looked into with."""

    store: Store
    settings: JudgeSettings
    builder: VersionBuilder
    engine: Engine

    def look_up(self, banks: Banks) -> Sequence[StoredMatch]:
        """Look items up."""
        return BankLookUp(ComparableStore(*self), now_ms).find(banks, 1 << 30).found

    def scan(self, banks: Banks) -> Iterator[StoredMatch]:
        """Compare everything."""
        known = KnownTexts(self.engine, self.settings, now_ms)
        known.replace(banks.entries())
        for compared in scan_store(self.store, known, ScanCounts()):
            yield from compared.stored_matches()


def filled(url: str, stack: ExitStack, articles: int, items: Sequence[FeedText]) -> Filled:
    """Fill a store with so many articles, and those that repeat the items."""
    lexicon = load_lexicon()
    config = load_config(None, _SETTINGS | {"store": {"url": url, "durability": "process"}})
    bound = unstored_binding(config, judge_settings(config, lexicon))
    store = stack.enter_context(opened_store(config))
    computing = engine(config, bound, lexicon)
    ours = Dupwatch(store, bound, computing, common=common_hashes(config))
    ours.preload(model_of_texts(), articles, np.random.default_rng(articles))
    ours.judge(list(repeating(items)))
    return Filled(store, bound.settings, version_builder(bound), computing)


def repeating(items: Sequence[FeedText]) -> Iterator[FeedText]:
    """Yield articles that repeat items."""
    rng = np.random.default_rng(7)
    around = {chars: make_feed(len(items), chars, copies_share=0.0, seed=chars) for chars in _AROUND_CHARS}
    letters = list(dict.fromkeys("".join(text.body for text in around[_AROUND_CHARS[0]][:20])))
    for place, item in enumerate(items):
        for number, share in enumerate(_EDITS):
            edited = [
                str(rng.choice(letters)) if changed else letter
                for letter, changed in zip(item.body, rng.random(len(item.body)) < share, strict=True)
            ]
            yield FeedText(f"copy-{place}-{number}", "".join(edited), item.id)
        for chars, others in around.items():
            other, middle = others[place].body, chars // 2
            yield FeedText(f"part {chars} {place}", f"{other[:middle]}\n{item.body}\n{other[middle:]}", item.id)


def timed(store: Filled, banks: Banks, rounds: int) -> list[Row]:
    """Return how long look-ups take, of one item and of all of them together."""
    one = [banks.only(*key) for key in list(banks.items)[:rounds]]
    rows: list[Row] = []
    for name, asked in (("1 item", one), (f"{len(banks.items):,} items", [banks] * min(rounds, 5))):
        store.look_up(asked[0])
        seconds, found = [], 0
        for each in asked:
            began_s = time.perf_counter()
            found += len(store.look_up(each))
            seconds.append(time.perf_counter() - began_s)
        rows.append({"looked up": name, "ms": spread([1e3 * each for each in seconds]), "found": found / len(asked)})
    return rows


def recall(store: Filled, banks: Banks) -> list[Row]:
    """Return which of the articles that a scan finds a look-up finds, by their similarity."""
    found = {match.stored.record.reference for match in store.look_up(banks)}
    there, hits = Counter[str](), Counter[str]()
    began_s = time.perf_counter()
    for match in store.scan(banks):
        named = _class_of(match)
        there[named] += 1
        hits[named] += match.stored.record.reference in found
    tell(f"The scan took {time.perf_counter() - began_s:.1f} s.")
    return [{"articles": named, "there": there[named], "found": hits[named] / there[named]} for named in sorted(there)]


def _class_of(match: StoredMatch) -> str:
    best, (kind, *rest) = match.matches[0], match.stored.record.id.split()
    if kind == "part":
        return f"with the item within {int(rest[0]):,} other characters"
    if best.form == "part":
        return "copies, less similar"
    low, high = next(limits for limits in _CLASSES if limits[0] <= best.similarity < limits[1])
    return f"copies, similarity {low:.1f} to {min(high, 1):.1f}"


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    sizes: Annotated[list[int] | None, typer.Option(help="Articles in the store; may be repeated.")] = None,
    items: Annotated[int, typer.Option(min=1, help="Items that are looked up together.")] = 100,
    url: Annotated[str | None, typer.Option("--store", help="An empty store; default: LMDB in a new folder.")] = None,
    *,
    scan: Annotated[bool, typer.Option("--scan/--no-scan", help="Also scan, and say what look-ups miss.")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="A small store, for a first look.")] = False,
) -> None:
    """Measure how fast stored articles that repeat items are looked up, and which are found."""
    single_threaded()
    keep_to_one_core()
    texts = make_feed(items, _ITEM_CHARS, copies_share=0.0, seed=3)
    banks = Banks.of([_BANK, *(BankItem(bank=_BANK.bank, item=text.id, text=text.body) for text in texts)])
    for size in sizes or ([10_000] if quick else [100_000]):
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dupwatch-bench-")))
            tell(f"Filling a store with {size:,} articles …")
            store = filled(url or f"lmdb:{scratch}/store", stack, size, texts)
            title = f"Items of {_ITEM_CHARS} characters looked up among {size:,} kept articles, one core"
            publish(PART, title, timed(store, banks, rounds=min(items, 20)), out=out, articles=size, items=items)
            if scan:
                publish(PART, "What a look-up finds of it", recall(store, banks), out=out, articles=size, items=items)


if __name__ == "__main__":
    typer.run(main)
