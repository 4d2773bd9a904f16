"""``dupwatch idf``: build an IDF table from the articles of a feed."""

import math
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from consumer.cli import render
from consumer.cli.options import ConfigOption, SchemeOption, SetOption, command_config
from consumer.cli.results import results, write
from consumer.cli.runs.feed_report import show_blank_lines
from consumer.config.config import Config
from consumer.decode.codecs import formats_for_help
from consumer.files.line_file import check_suffix
from consumer.files.source import STREAM, FileSource
from consumer.fingerprint import Fingerprinter
from consumer.model.errors import BadRecord, ConfigError, SinkError, SourceError
from consumer.text.counts import counted
from consumer.wiring.components import feed_file, file_decoder, lexicon_of, scheme_of, write_options
from storage.files import WriteOptions, replace_file

app = typer.Typer(no_args_is_help=True, help="Build a table of inverse document frequencies (IDF).")

WORDS_MAX: Final = 4_000_000
"""Maximum words in memory, about 100 bytes each. Beyond that, words that only one article had so far are dropped."""


class _Counts:
    """Counts of the articles in which each word occurs, of invalid records, and of dropped words."""

    def __init__(self) -> None:
        self.articles = 0
        self.bad_records = 0
        self.dropped = 0
        self.words: Counter[str] = Counter()

    def add(self, words: set[str]) -> None:
        """Count the words of one article."""
        self.articles += 1
        self.words.update(words)
        if len(self.words) > WORDS_MAX:
            common = Counter({word: count for word, count in self.words.items() if count > 1})
            self.dropped += len(self.words) - len(common)
            self.words = common

    def table(self) -> str:
        """Return the table: a word and its weight on each line, sorted by code point.

        A word in n of N articles has the weight ln((N + 1) / n), which is above 0 even if n is N.
        """
        total = self.articles + 1
        return "".join(f"{word} {math.log(total / count):.9g}\n" for word, count in sorted(self.words.items()))


@app.command()
def build(
    feed: Annotated[
        str,
        typer.Argument(metavar="FEED|-", help=f"Articles as {formats_for_help()}; - for standard input."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="File for the table; - for standard output.")],
    scheme: SchemeOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Build an IDF table from all articles of a feed, with the words as the scheme splits them."""
    chosen = command_config(config, overrides, fingerprint__scheme=scheme)
    console = render.console(stderr=True)
    if output != STREAM:
        check_suffix(Path(output), "a table of words", gzip=False)
    counts = _count_words(feed, output, chosen, console)
    if not counts.words:
        raise SourceError(f"no article in {feed} has keywords, so there is nothing to count; name another feed")
    if output == STREAM:
        with results():
            write(counts.table().encode())
    else:
        _write(Path(output), counts.table().encode(), write_options(chosen))
    console.print(f"{counted(len(counts.words), 'word')} from {counted(counts.articles, 'article')}")
    if counts.bad_records:
        console.print(f"Skipped {counted(counts.bad_records, 'invalid record')}; dupwatch run shows what is wrong")
    if counts.dropped:
        console.print(
            f"Dropped {counts.dropped:,} words that occur in only one article: the limit is {WORDS_MAX:,} words"
        )


def _count_words(feed: str, output: str, config: Config, console: Console) -> _Counts:
    counts = _Counts()
    decode = file_decoder(config)
    source = feed_file(config, feed)
    try:
        _check_output(source, output)
        fingerprinter = Fingerprinter(scheme_of(config), lexicon_of(config))
        with render.progress(console) as progress:
            update = render.follow(progress, "counting", source.progress)
            for batch in source.batches():
                for record in batch.records:
                    try:
                        body = decode(record).body
                    except BadRecord:
                        counts.bad_records += 1
                        continue
                    if body is not None:
                        counts.add(fingerprinter.words(body))
                update()
    finally:
        source.close()
    show_blank_lines(console, source)
    return counts


def _check_output(source: FileSource, output: str) -> None:
    """Raise ``ConfigError`` if the table would overwrite the feed."""
    try:
        is_source = output != STREAM and source.is_same_file(Path(output).stat())
    except OSError:
        return
    if is_source:
        raise ConfigError(f"--output {output} would overwrite the feed {source.name}; name another file")


def _write(path: Path, table: bytes, writing: WriteOptions) -> None:
    """Write a temporary file and rename it, so that no run ever reads half a table. Raises ``SinkError``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        replace_file(path, temporary, table, writing)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise SinkError(f"{path} cannot be written: {error.strerror}") from error
