"""Fingerprints alone, on one core: each scheme of dupwatch against ``extract_tags`` with ``Simhash``.

``python -m benchmarks.speed.fingerprint_only``. A fingerprint of dupwatch comes with sketch, band keys and keywords.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.speed.harness import Contender, Timing, ratios, take_turns
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.peers import StockBuild, installed
from benchmarks.speed.report import OUT, Row, publish
from benchmarks.speed.texts import make_feed
from consumer.fingerprint import SCHEME_NAMES, Fingerprinter, Scheme
from consumer.workers.word_files import load_lexicon

PART: Final = "fingerprint_only"
CHARS: Final = (500, 2_000)
STOCK: Final = "jieba.analyse + simhash"
_BATCH: Final = 256


def contenders(texts: Sequence[str], articles: int) -> list[Contender]:
    """Build a fingerprinter of each scheme, and the stock one; round r takes ``texts[r * articles:…]``."""
    lexicon = load_lexicon()
    built = [
        Contender(f"dupwatch, {name}", partial(_in_batches, Fingerprinter(Scheme(name=name), lexicon), texts, articles))
        for name in SCHEME_NAMES
    ]
    if installed("jieba", "simhash"):
        built.append(Contender(STOCK, partial(_one_by_one, StockBuild(), texts, articles)))
    return built


def rows(timings: Sequence[Timing]) -> list[Row]:
    """Articles a second of each, and how many times the stock one's that is."""
    stock = next((timing for timing in timings if timing.name == STOCK), None)
    return [
        {
            "what": timing.name,
            "articles/s": timing.rate,
            "µs an article": timing.microseconds,
            "times stock": None if stock is None else ratios(timing, stock),
        }
        for timing in timings
    ]


def _in_batches(fingerprinter: Fingerprinter, texts: Sequence[str], articles: int, number: int) -> int:
    part = texts[number * articles : (number + 1) * articles]
    for start in range(0, len(part), _BATCH):
        fingerprinter.fingerprint(part[start : start + _BATCH])
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
