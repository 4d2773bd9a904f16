"""How well ``dupwatch size`` knows what a store takes: ``python -m benchmarks.store_sizes``.

Feeds of several lengths and languages are judged by ``dupwatch run`` into a new store. What that takes on the disk is
compared with what is computed: from the mean length and the language alone, and from a sample of the feed. ``--feed
FILE`` takes feeds of one's own. With ``--hbase`` it starts an HBase of its own, and compacts its tables first.
"""

import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Annotated, Final, NamedTuple

import msgspec
import typer

from benchmarks.hbase.servers import Servers, Wanted, compact, make_tables, servers
from benchmarks.service.serving import dupwatch
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.store_tools.made_articles import ArticleMaker
from consumer.store_tools.sizing import COPIES, DAY_S, Feed, Sizing
from consumer.store_tools.speeds import documented_speed
from consumer.store_tools.store_plan import store_plan
from consumer.store_tools.text_sizes import Language, TextSizes, assumed_sizes, measured_sizes
from consumer.stress.made_texts import make_feed
from consumer.text.sample_feed import sample_texts
from consumer.wiring.calibration import stored_articles
from consumer.wiring.components import scheme_of
from consumer.wiring.stores import opened_store
from storage.lmdb.data_file import DATA_FILE

PART: Final = "store_sizes"
HEAP_MB: Final = 3_072
_TABLES: Final = ("postings", "articles")
_LOOK_S: Final = 5
_SAMPLED: Final = 2_000
_SAMPLE_EVERY: Final = 3
"""Articles whose sizes are measured: one in this many, so that the sample does not begin the feed only."""
_SAMPLE_FEED: Final = Path(__file__).parents[1] / "sample" / "feed.jsonl"


class Contents(NamedTuple):
    """What a store holds: articles, the share of flags, and the mean sizes of all and of a sample."""

    articles: int
    copies: float
    sizes: TextSizes
    sample: TextSizes


def write_made(path: Path, chars: int, language: Language, articles: int) -> None:
    """Write a feed of made articles: Chinese ones from words, English ones from the pieces of the sample feed."""
    if language == "zh":
        bodies: Iterator[str] = (text.body for text in make_feed(articles, chars, copies_share=COPIES))
    else:
        bodies = ArticleMaker(sample_texts(_SAMPLE_FEED, ["en"]), chars, COPIES).bodies(articles)
    encoder = msgspec.json.Encoder()
    with path.open("wb") as lines:
        for number, body in enumerate(bodies):
            url = f"https://news.example/{language}/{number}"
            article = {"id": f"{language}-{number}", "source": "news", "title": body[:20], "url": url, "body": body}
            lines.write(encoder.encode(article) + b"\n")


def judge(feed: Path, store: str, plan: str) -> None:
    """Judge a feed as people do."""
    options = ["--source", str(feed), "--sink", "-", "--store", store, "--set", f"judge.plan={plan}"]
    subprocess.run([dupwatch(), "run", *options], check=True, capture_output=True)


def contents(config: Config) -> Contents:
    """Read a store."""
    with opened_store(config, readonly=True) as store:
        flags = [article.is_flagged for article in stored_articles(store)]
        sizes = measured_sizes(stored_articles(store), message_bytes=0)
        some = islice(stored_articles(store), 0, _SAMPLED * _SAMPLE_EVERY, _SAMPLE_EVERY)
        return Contents(len(flags), fmean(flags), sizes, measured_sizes(some, message_bytes=0))


def row(name: str, config: Config, measured_bytes: int, *, remote: bool) -> Row:
    """Compare the size of a store with what is computed for as many articles."""
    found = contents(config)
    feed = Feed(found.articles, found.copies, DAY_S, DAY_S)
    plan = store_plan(config, scheme_of(config), feed.in_window, remote=remote)
    chars, language = round(found.sizes.chars), found.sizes.language
    speed = documented_speed(chars, language, plan.plan.name, remote=remote)
    by_language, by_sample = (
        Sizing(feed, sizes, plan, speed, remote).store_bytes for sizes in (assumed_sizes(chars, language), found.sample)
    )
    return {
        "feed": name,
        "language": language,
        "articles": f"{found.articles:,}",
        "characters": f"{chars:,}",
        "plan": plan.plan.name,
        "copies, %": f"{100 * found.copies:.0f}",
        "MB": f"{measured_bytes / 1e6:,.1f}",
        "bytes an article": f"{measured_bytes / found.articles:,.0f}",
        "computed, %": f"{100 * (by_language / measured_bytes - 1):+.1f}",
        "from a sample, %": f"{100 * (by_sample / measured_bytes - 1):+.1f}",
    }


def in_lmdb(name: str, feed: Path, place: Path, plan: str) -> Row:
    """Measure an LMDB store: the size of its file."""
    tell(f"judging {name} …")
    judge(feed, f"lmdb:{place}", plan)
    config = load_config(None, {"store": {"url": f"lmdb:{place}"}, "judge": {"plan": plan}})
    return row(name, config, (place / DATA_FILE).stat().st_size, remote=False)


def in_hbase(running: Servers, given: Iterable[tuple[str, Path]], plan: str) -> list[Row]:
    """Measure HBase stores: files of the large tables, flushed and compacted, before they are replicated."""
    filled: list[tuple[str, Wanted]] = []
    for number, (name, feed) in enumerate(given):
        wanted = Wanted(plan, number, packed=False)
        make_tables(running, wanted)
        tell(f"judging {name} …")
        judge(feed, running.url(wanted), plan)
        compact(running, wanted, _TABLES)
        filled.append((name, wanted))
    tell("waiting until replaced files are gone …")
    while any(len(list(folder.iterdir())) > 1 for _, wanted in filled for folder in _families(running, wanted)):
        time.sleep(_LOOK_S)
    return [_hbase_row(name, running, wanted) for name, wanted in filled]


def _families(running: Servers, wanted: Wanted) -> list[Path]:
    """Return the folders of the files of each family in each region."""
    data = running.hbase.folder / "data" / "hbase" / "data" / wanted.namespace
    return [path for table in _TABLES for path in data.glob(f"{table}/*/?") if path.is_dir()]


def _hbase_row(name: str, running: Servers, wanted: Wanted) -> Row:
    size_bytes = sum(file.stat().st_size for folder in _families(running, wanted) for file in folder.iterdir())
    config = load_config(None, {"store": {"url": running.url(wanted)}, "judge": {"plan": wanted.plan}})
    return row(name, config, size_bytes, remote=True)


_MADE: Final[dict[str, tuple[int, Language]]] = {
    "made, zh": (500, "zh"),
    "made, zh, long": (3_000, "zh"),
    "made, en": (500, "en"),
    "made, en, long": (3_000, "en"),
}


def feeds(scratch: Path, articles: int, own: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yield feeds, each written when it is its turn."""
    for path in own:
        yield path.name, path
    for name, (chars, language) in _MADE.items() if not own else ():
        path = scratch / f"{language}-{chars}.jsonl"
        write_made(path, chars, language, articles)
        yield name, path


def main(
    articles: Annotated[int, typer.Option(min=100, help="Articles of each made feed.")] = 20_000,
    feed: Annotated[list[Path] | None, typer.Option(help="Feeds of your own, in place of the made ones.")] = None,
    plan: Annotated[str, typer.Option(help="4x16 or 16x28.")] = "16x28",
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    *,
    hbase: Annotated[bool, typer.Option("--hbase", help="In an HBase of its own, in place of LMDB.")] = False,
) -> None:
    """Measure what stores take, and compare."""
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder:
        scratch = Path(folder)
        given = feeds(scratch, articles, feed or [])
        if hbase:
            with servers(scratch / "servers", heap_mb=HEAP_MB) as running:
                found = in_hbase(running, given, plan)
        else:
            found = [in_lmdb(name, path, scratch / f"store-{name}", plan) for name, path in given]
    publish(PART, f"What stores take, {'HBase' if hbase else 'LMDB'}", found, out=out, plan=plan)


if __name__ == "__main__":
    typer.run(main)
