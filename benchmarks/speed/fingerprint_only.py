"""Fingerprints alone, on one core: each scheme and both engines of dupwatch, against ``extract_tags`` with ``Simhash``.

``python -m benchmarks.speed.fingerprint_only``. A fingerprint of dupwatch comes with sketch, band keys and keywords.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.speed.harness import Contender, Timing, ratios, take_turns
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.peers import StockBuild, installed
from benchmarks.speed.report import OUT, Row, publish
from consumer.fingerprint import SCHEME_NAMES, Engine, Fingerprinter, Scheme
from consumer.fingerprint.compiled import CompiledFingerprinter, core_version
from consumer.stress.made_texts import make_feed
from consumer.workers.word_files import load_lexicon

PART: Final = "fingerprint_only"
CHARS: Final = (500, 2_000)
STOCK: Final = "jieba.analyse + simhash"
_BATCH: Final = 256


def contenders(texts: Sequence[str], articles: int) -> list[Contender]:
    """Build the engines of each scheme, and the stock one; round r takes ``texts[r * articles:…]``."""
    lexicon = load_lexicon()
    engines: dict[str, Engine] = {}
    for name in SCHEME_NAMES:
        engines[f"Python, {name}"] = Fingerprinter(Scheme(name=name), lexicon)
        if core_version() is not None:
            engines[f"compiled, {name}"] = CompiledFingerprinter(Scheme(name=name), lexicon)
    built = [Contender(name, partial(_in_batches, engine, texts, articles)) for name, engine in engines.items()]
    if installed("jieba", "simhash"):
        built.append(Contender(STOCK, partial(_one_by_one, StockBuild(), texts, articles)))
    return built


def rows(timings: Sequence[Timing]) -> list[Row]:
    """Articles a second of each, and how many times the stock one's and those of the engine in Python that is."""
    by_name = {timing.name: timing for timing in timings}
    stock = by_name.get(STOCK)
    return [
        {
            "what": timing.name,
            "articles/s": timing.rate,
            "µs an article": timing.microseconds,
            "times stock": None if stock is None else ratios(timing, stock),
            "times Python": None if (python := _in_python(timing.name, by_name)) is None else ratios(timing, python),
        }
        for timing in timings
    ]


def _in_python(name: str, by_name: Mapping[str, Timing]) -> Timing | None:
    """Return the timing of the engine in Python, where this is the compiled one of the same scheme."""
    return by_name[name.replace("compiled", "Python")] if name.startswith("compiled") else None


def _in_batches(engine: Engine, texts: Sequence[str], articles: int, number: int) -> int:
    part = texts[number * articles : (number + 1) * articles]
    for start in range(0, len(part), _BATCH):
        engine.fingerprint(part[start : start + _BATCH])
    return len(part)


def _one_by_one(stock: StockBuild, texts: Sequence[str], articles: int, number: int) -> int:
    part = texts[number * articles : (number + 1) * articles]
    for text in part:
        stock.fingerprint(text)
    return len(part)


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds, for a first look.")] = False,
) -> None:
    """Measure fingerprints alone."""
    single_threaded()
    keep_to_one_core()
    articles, rounds = (64, 3) if quick else (256, 7)
    for chars in CHARS:
        texts = [text.body for text in make_feed((rounds + 1) * articles, chars, seed=chars)]
        found = rows(take_turns(contenders(texts, articles), rounds))
        title = f"Fingerprint only, one core, articles of {chars:,} characters"
        publish(PART, title, found, out=out, chars=chars, articles=articles, rounds=rounds)


if __name__ == "__main__":
    typer.run(main)
