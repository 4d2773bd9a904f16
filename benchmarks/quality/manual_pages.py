"""A feed of passages from the translated manual pages in Debian packages.

``python -m benchmarks.quality.manual_pages PACKAGE… -o FEED.jsonl.gz``: for languages of which jieba knows no words. A
passage is as long as a short article. The head of a page, with the command's name and options in ASCII, is left out.
"""

import gzip
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.quality.debian_corpus import corpus, unpacked
from benchmarks.quality.feed import Article, write_lines
from benchmarks.quality.troff import text_of_manual

HEAD_CHARS = 300
PASSAGE_CHARS_MIN, PASSAGE_CHARS_MAX = 200, 1_500
PASSAGES_MAX = 2


def passages(text: str, rng: random.Random) -> Iterator[str]:
    """Yield up to two passages of 200 to 1,500 characters that follow each other, from behind the head of a page."""
    start = HEAD_CHARS
    for _ in range(PASSAGES_MAX):
        start = text.find(" ", start) + 1
        end = text.rfind(" ", start, start + rng.randint(PASSAGE_CHARS_MIN, PASSAGE_CHARS_MAX))
        if not start or end - start < PASSAGE_CHARS_MIN:
            return
        yield text[start:end]
        start = end


def manuals_in(package: str, files: Path, rng: random.Random) -> Iterator[Article]:
    """Yield passages of the pages below ``usr/share/man`` by path; the folder there is the language."""
    manuals = files / "usr" / "share" / "man"
    for file in sorted(manuals.rglob("*.gz")):
        if file.is_symlink() or not file.is_file():
            continue
        path = file.relative_to(manuals)
        text = text_of_manual(gzip.decompress(file.read_bytes()).decode("utf-8", "replace"))
        for number, passage in enumerate(passages(text, rng), 1):
            yield Article(
                id=f"{package}/{path.as_posix()}#{number}",
                source=package,
                lang=path.parts[0].partition(".")[0].replace("_", "-"),
                title=path.name.removesuffix(".gz"),
                body=passage,
            )


def main(
    packages: Annotated[list[str], typer.Argument(help="Debian packages, NAME or NAME=VERSION.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The feed as JSON lines; .gz is packed.")],
    seed: Annotated[int, typer.Option(help="Of the lengths and the feed order.")] = 1,
) -> None:
    """Make a feed of passages from the manual pages in Debian packages."""
    rng = random.Random(seed)
    articles: list[Article] = []
    for package in packages:
        with tempfile.TemporaryDirectory() as folder:
            found = list(manuals_in(package, unpacked(package, Path(folder) / "package"), rng))
        typer.echo(f"{package}: {len(found)} passages")
        articles += found
    typer.echo(f"{write_lines(output, corpus(articles, set(), seed, None))} articles")


if __name__ == "__main__":
    typer.run(main)
