"""Whether both engines give the same bytes on whole feeds: ``python -m benchmarks.quality.engines FEED...``.

Exits with 1 where they do not, and names the articles. tests/unit/core does this with the development feed and with
written, generated and changed texts.
"""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from benchmarks.quality.feed import Article, read_lines
from consumer.fingerprint import Engine, Fingerprinter, Fingerprints, Scheme
from consumer.fingerprint.compiled import CompiledFingerprinter
from consumer.workers.word_files import load_lexicon

SCHEMES: Final = (
    *(Scheme(f"jieba-tfidf/{number}", facts=True) for number in (1, 2, 3)),
    Scheme("jieba-tfidf/3", slots=True),
)
_BATCH: Final = 256


def differing(ours: Fingerprints, reference: Fingerprints) -> list[str]:
    """Return the names of the fields in which they differ."""
    return [
        field.name
        for field in fields(Fingerprints)
        if not _same(getattr(ours, field.name), getattr(reference, field.name))
    ]


def _same(ours: object, reference: object) -> bool:
    if isinstance(ours, np.ndarray) and isinstance(reference, np.ndarray):
        return ours.dtype == reference.dtype and np.array_equal(ours, reference)
    return ours == reference


def compared(engines: tuple[Engine, Engine], articles: list[Article]) -> list[str]:
    """Return the ids of the articles on which the engines differ, each with the fields."""
    texts, languages = [article.body for article in articles], [article.lang for article in articles]
    ours, reference = (engine.fingerprint(texts, languages) for engine in engines)
    if not differing(ours, reference):
        return []
    found = []
    for article in articles:
        names = differing(*(engine.fingerprint([article.body], [article.lang]) for engine in engines))
        if names:
            found.append(f"{article.id}: {', '.join(names)}")
    return found


def main(
    feeds: Annotated[
        list[Path], typer.Argument(exists=True, dir_okay=False, help="Feeds as JSON lines; .gz is packed.")
    ],
) -> None:
    """Compare the engines under all schemes of keywords, with facts or slots, and parts."""
    lexicon = load_lexicon()
    wrong = 0
    for feed in feeds:
        articles = list(read_lines(feed, Article))
        for scheme in SCHEMES:
            engines = CompiledFingerprinter(scheme, lexicon, parts=True), Fingerprinter(scheme, lexicon, parts=True)
            batches = (articles[start : start + _BATCH] for start in range(0, len(articles), _BATCH))
            found = [line for batch in batches for line in compared(engines, batch)]
            wrong += len(found)
            name = f"{scheme.name} with slots" if scheme.slots else scheme.name
            typer.echo(f"{feed.name}, {name}: {len(articles):,} articles, {len(found)} differ")
            for line in found:
                typer.echo(f"  {line}")
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
