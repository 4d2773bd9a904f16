"""``dupwatch explain``: why two articles are near each other, or are not."""

import difflib
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from consumer.app import (
    decoder,
    fingerprinter,
    judge_settings,
    lexicon_of,
    opened_store,
    stored_settings,
    version_builder,
)
from consumer.article import Article, Reason
from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured, id_hash_of
from consumer.cli.results import results, write_json
from consumer.comparison import Comparison, compare
from consumer.config import Config
from consumer.errors import BadRecord, ConfigError, SourceError
from consumer.events import shared_keywords
from consumer.fingerprint import Lexicon, facts_count, split_blocks
from consumer.inspection import latest
from consumer.settings import JudgeSettings
from consumer.versions import Came
from storage.clock import now_ms
from storage.interface import Store
from storage.records import Record, Stored

DIFF_TOKENS_MAX = 4_000
"""Each side of the difference is cut here: comparing grows with the square."""
FACTS_SHOWN_MAX = 40
_TOKEN = re.compile(r"[0-9A-Za-z_]+|\s+|.", re.DOTALL)


class _Side(NamedTuple):
    stored: Stored
    body: str | None


class _Facts(NamedTuple):
    """Facts that one of two articles has alone, and that both have."""

    only_a: list[str]
    only_b: list[str]
    both: list[str]


def explain(
    a: Annotated[str, typer.Argument(metavar="A", help="A file (an article as JSON, or plain text), or an id.")],
    b: Annotated[str, typer.Argument(metavar="B", help="As A.")],
    store: StoreOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Explain why two articles count as near duplicates, or why they do not: every condition, with its figures."""
    chosen = configured(config, settings, store__url=store)
    lexicon = lexicon_of(chosen)
    with ExitStack() as held:
        opened = None
        if chosen.store.url != "memory:":
            opened = held.enter_context(opened_store(chosen, readonly=True))
        judged_by = judge_settings(chosen, lexicon) if opened is None else stored_settings(opened, lexicon)
        one = _side(a, chosen, opened, judged_by, lexicon)
        other = _side(b, chosen, opened, judged_by, lexicon)
    comparison = compare(one.stored, [other.stored], judged_by)[0]
    facts = _facts(one, other, judged_by, lexicon) if comparison.facts_shared_min else None
    with results():
        if json:
            shared = shared_keywords(one.stored.record, other.stored.record)
            found = {"near": comparison.near, **msgspec.to_builtins(comparison), "shared_keywords": shared}
            counts = {
                f"facts_{name}": facts_count(side.stored.record.facts) for name, side in (("a", one), ("b", other))
            }
            found |= counts | {"facts": None if facts is None else facts._asdict()}
            write_json(found)
        else:
            _print(one, other, comparison, judged_by, facts)


def _facts(one: _Side, other: _Side, judged_by: JudgeSettings, lexicon: Lexicon) -> _Facts | None:
    """The facts themselves; None where a text is not at hand, as records keep hashes only."""
    if one.body is None or other.body is None:
        return None
    engine = fingerprinter(judged_by, lexicon)
    a, b = engine.facts(one.body), engine.facts(other.body)
    return _Facts(sorted(a - b), sorted(b - a), sorted(a & b))


def _print(one: _Side, other: _Side, comparison: Comparison, judged_by: JudgeSettings, facts: _Facts | None) -> None:
    shared = shared_keywords(one.stored.record, other.stored.record)
    console = render.console()
    for name, side in (("A", one), ("B", other)):
        console.print(_fingerprint_line(name, side.stored.record))
    console.print(render.conditions(comparison, judged_by))
    console.print(render.keywords_line(shared[:20]))
    if comparison.facts_shared_min:
        _print_facts(console, facts, one, other)
    if one.body is None or other.body is None:
        console.print("No difference to show: the store keeps no bodies.")
    else:
        console.print(difference(one.body, other.body))


def _print_facts(console: Console, facts: _Facts | None, one: _Side, other: _Side) -> None:
    if facts is None:
        counts = [facts_count(side.stored.record.facts) for side in (one, other)]
        console.print(f"A has {counts[0]} facts, B has {counts[1]}; which ones, only the texts tell.")
        return
    for name, some in (("facts of A alone", facts.only_a), ("of B alone", facts.only_b), ("of both", facts.both)):
        console.print(render.facts_line(name, some[:FACTS_SHOWN_MAX]))


def _side(name: str, config: Config, store: Store | None, settings: JudgeSettings, lexicon: Lexicon) -> _Side:
    path = Path(name)
    if _is_file(path):
        article = _article(path, config)
        fingerprints = fingerprinter(settings, lexicon).fingerprint([article.body or ""], [article.lang])
        version = version_builder(settings).versions([article], [Came(now_ms(), 0)], fingerprints)[0]
        return _Side(Stored(version.record, None, None), article.body)
    if store is None:
        raise ConfigError(
            f"{name!r} is no file; to name an article by its id, say which store it is in: --store lmdb:PATH or hbase://HOST:PORT/NAMESPACE"
        )
    stored = latest(store.history(id_hash_of(name)))
    if stored is None:
        raise ConfigError(f"{name!r} is neither a file nor an article in {config.store.url}")
    return _Side(stored, store.bodies([stored.record.reference])[0])


def _is_file(path: Path) -> bool:
    """Whether there is such a file; an id may be longer than any file's name."""
    try:
        return path.is_file()
    except OSError:
        return False


def _article(path: Path, config: Config) -> Article:
    """An article as JSON, or else the whole file as its text."""
    try:
        with path.open("rb") as file:
            data = file.read(config.source.record_bytes_max + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return decoder(config)(data)
    except BadRecord as error:
        if error.reason not in {Reason.INVALID_JSON, Reason.NOT_AN_OBJECT, Reason.INVALID_UTF8}:
            raise ConfigError(f"{path} is an article with a fault: {error.detail}") from error
        # The line end that editors put behind the last line is the file's, not the text's.
        text = data.decode(errors="replace").removesuffix("\n").removesuffix("\r")
        return Article(id=str(path), body=text)


def _fingerprint_line(name: str, record: Record) -> Text:
    bits = 8 * len(record.fingerprint)
    blocks = split_blocks(int.from_bytes(record.fingerprint), bits, bits // 16)
    cut = " ".join(f"{block:04x}" for block in blocks)
    return Text.assemble((f"{name}  ", "bold"), render.plain(record.id), "  ", (cut, "cyan"))


def difference(a: str, b: str) -> Text:
    """Both texts in one: what only A has struck out in red, what only B has in green."""
    left, right = (_TOKEN.findall(text)[:DIFF_TOKENS_MAX] for text in (a, b))
    shown = Text()
    for kind, a0, a1, b0, b1 in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            shown.append(_abridged("".join(left[a0:a1])))
        else:
            shown.append(_marked("".join(left[a0:a1]), "[-", "-]"), "red strike")
            shown.append(_marked("".join(right[b0:b1]), "{+", "+}"), "green")
    return shown


def _marked(text: str, before: str, after: str) -> str:
    return f"{before}{render.plain(text)}{after}" if text else ""


def _abridged(text: str, chars_max: int = 80) -> str:
    """What is equal on both sides, without its middle where it is long."""
    shown = render.plain(text.replace("\n", " "))
    half = chars_max // 2
    return shown if len(shown) <= chars_max else f"{shown[:half]} … {shown[-half:]}"
