"""The sample feed as a corpus: ``python -m benchmarks.quality.sample_corpus -o FEED.jsonl``.

The first version of every article with a body, in feed order; what comes near the end of the feed (another version, a
replay, retractions) is left out, for pairs name articles by their ids. Pairs are then found as for any other feed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.quality.feed import Article, in_feed_order, read_lines, write_lines

SAMPLE = Path(__file__).parent.parent.parent / "sample" / "feed.jsonl"


def first_versions(feed: Path) -> Iterator[Article]:
    """Yield the articles of a feed whose ids may come again and whose bodies may be missing."""
    seen: set[str] = set()
    for line in read_lines(feed, dict[str, Any]):
        if line.get("body") is None or line["id"] in seen:
            continue
        seen.add(line["id"])
        named = {name: line.get(name, "") for name in ("lang", "source", "title")}
        yield Article(id=line["id"], body=line["body"], **named)


def main(
    output: Annotated[Path, typer.Option("-o", "--output", help="Articles as JSON lines; .gz is packed.")],
    feed: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="The sample feed.")] = SAMPLE,
) -> None:
    """Write the sample feed without its late events."""
    typer.echo(f"{write_lines(output, in_feed_order(first_versions(feed)))} articles")


if __name__ == "__main__":
    typer.run(main)
