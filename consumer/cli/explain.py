"""``dupwatch explain``: why two articles are near-duplicates, or why not."""

from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from consumer.cli import difference_view, render
from consumer.cli.conditions import conditions
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, configured
from consumer.cli.results import results, write_json
from consumer.cli.texts import check_one_stream, is_text, read_article
from consumer.config.config import Config
from consumer.config.judging import completed
from consumer.fingerprint import Lexicon, facts_count, split_blocks
from consumer.judge.binding import Binding
from consumer.judge.events import shared_keywords, version_name
from consumer.judge.settings import differences
from consumer.judge.versions import ArrivedAt
from consumer.model.errors import ConfigError
from consumer.store_tools.explanation import Explanation, Facts, Side, explained, plain, stored_side
from consumer.store_tools.history import id_hash_of
from consumer.store_tools.requested_settings import settings_to_compare
from consumer.wiring.components import engine, judge_settings, lexicon_of, version_builder
from consumer.wiring.stores import STORE_EXAMPLES, opened_store, outlives_run, stored_binding, unstored_binding
from storage.clock import now_ms
from storage.interface import Store
from storage.records import Stored

FACTS_SHOWN_MAX = 40
_VERSION_HELP = "Version of {} if that is an id, as in events; default: the latest."


def explain(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A file with an article as JSON or with plain text, - for standard input, or an id."
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="Same as A.")],
    store: LastingStoreOption = None,
    version_a: Annotated[str | None, typer.Option(help=_VERSION_HELP.format("A"), metavar="HEX")] = None,
    version_b: Annotated[str | None, typer.Option(help=_VERSION_HELP.format("B"), metavar="HEX")] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Explain why two articles are near-duplicates, or why not: every condition, with its figures.

    Articles in a store are compared with the settings of that store. Settings of the judge and source rules that are
    given here override them.
    """
    check_one_stream([a, b])
    chosen = configured(config, settings, store__url=store)
    explanation = _explained(chosen, (a, version_a), (b, version_b))
    with results():
        if json:
            write_json(plain(explanation))
        else:
            _print(explanation)


def _explained(config: Config, a: tuple[str, str | None], b: tuple[str, str | None]) -> Explanation:
    lexicon = lexicon_of(config)
    with ExitStack() as stack:
        opened = None
        other_settings: list[str] = []
        if not outlives_run(config):
            bound = unstored_binding(config, judge_settings(config, lexicon))
        else:
            opened = stack.enter_context(opened_store(config, readonly=True))
            stored = stored_binding(opened, lexicon)
            bound = stored._replace(settings=settings_to_compare(config, stored.settings))
            # A file is read as the articles of the store were.
            config = completed(config, stored.settings)
            other_settings = differences(stored.settings.encode(), bound.settings)
        side_a, side_b = (_side(*named, config, opened, bound, lexicon) for named in (a, b))
    return explained(side_a, side_b, bound.settings, lexicon, other_settings)


def _print(explanation: Explanation) -> None:
    a, b, comparison = explanation.a, explanation.b, explanation.comparison
    console = render.console()
    for name, side in (("A", a), ("B", b)):
        console.print(_fingerprint_line(name, side))
    if explanation.other_settings:
        console.print(
            render.plain(
                f"Compared with settings that differ from the store's: {'; '.join(explanation.other_settings)}"
            )
        )
    histories = (a.history, b.history)
    console.print(conditions(a.stored, b.stored, histories, comparison, explanation.judged_by))
    console.print(render.keywords_line(shared_keywords(a.stored.record, b.stored.record)[:20]))
    if comparison.facts_shared_min:
        _print_facts(console, explanation.facts, a, b)
    for conflict in explanation.slot_conflicts or ():
        console.print(render.plain(f"slot {conflict.slot}: {conflict.a} in A, {conflict.b} in B"))
    if explanation.difference is None:
        console.print("The texts cannot be compared: the store keeps no bodies.")
        return
    console.print(difference_view.shown(explanation.difference))
    for note in difference_view.notes(explanation.difference):
        console.print(note)


def _print_facts(console: Console, facts: Facts | None, a: Side, b: Side) -> None:
    if facts is None:
        counts = [facts_count(side.stored.record.facts) for side in (a, b)]
        console.print(f"A has {counts[0]} facts, B has {counts[1]}; listing them needs the texts.")
        return
    for name, some in (("facts only in A", facts.only_a), ("only in B", facts.only_b), ("in both", facts.both)):
        console.print(render.facts_line(name, some[:FACTS_SHOWN_MAX]))
        if len(some) > FACTS_SHOWN_MAX:
            console.print(f"... and {len(some) - FACTS_SHOWN_MAX} more; use --json for all")


def _side(
    name: str, version: str | None, config: Config, store: Store | None, bound: Binding, lexicon: Lexicon
) -> Side:
    if is_text(name):
        if version is not None:
            raise ConfigError(f"{name} is a file, and only ids have versions; omit --version-a or --version-b")
        article = read_article(name, config)
        fingerprints = engine(config, bound, lexicon).fingerprint([article.body or ""], [article.lang])
        built = version_builder(bound).versions([article], [ArrivedAt(now_ms(), 0)], fingerprints)[0]
        return Side(Stored(built.record, None, None), article.body, ())
    if store is None:
        raise ConfigError(f"no file named {name!r}; if it is an id, name its store: {STORE_EXAMPLES}")
    if not store.history(id_hash_of(name)):
        raise ConfigError(f"no file named {name!r}, and no article with that id in {config.store.url}")
    return stored_side(store, config.store.url, name, version)


def _fingerprint_line(name: str, side: Side) -> Text:
    record = side.stored.record
    bits = 8 * len(record.fingerprint)
    blocks = split_blocks(int.from_bytes(record.fingerprint), bits, bits // 16)
    cut = " ".join(f"{block:04x}" for block in blocks)
    line = Text.assemble((f"{name}  ", "bold"), render.plain(record.id), "  ", (cut, "cyan"))
    if len(side.history) > 1:
        line.append(f"  version {version_name(record.reference)}; dupwatch show lists all", "dim")
    return line
