"""``dupwatch bank matches``: which stored articles repeat items of a bank, looked up in a moment."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from consumer.banks.bank import Banks
from consumer.cli import render
from consumer.cli.banks.options import BankArgument, BanksOption, chosen_items
from consumer.cli.banks.views import match_fields, match_table
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, configured
from consumer.cli.results import answer
from consumer.judge.settings import JudgeSettings
from consumer.store_tools.bank_matches import BankLookUp, StoredMatches
from consumer.store_tools.bank_scan import member_counts
from consumer.text.counts import counted
from consumer.wiring.banks import read_banks
from consumer.wiring.comparable_store import bound_store
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store

_DAY_S = 86_400
_HOUR_S = 3_600


def matches(
    bank: BankArgument,
    item: Annotated[str | None, typer.Argument(metavar="ITEM", help="One item; default: all of the bank.")] = None,
    members: Annotated[
        bool,
        typer.Option("--members", help="Also scan the store, and count the flagged articles that repeat each of them."),
    ] = False,
    json: JsonOption = False,
    store: LastingStoreOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Show which kept articles of the window repeat items of a bank.

    They are looked up by the keys of the store, which takes a moment, but may miss some; dupwatch bank scan compares
    every article.
    """
    chosen = configured(config, settings, store__url=store, banks__url=banks)
    items = chosen_items(read_banks(chosen), bank, item)
    with bound_store(chosen) as opened:
        found = BankLookUp(opened.compared, now_ms).find(items)
        counted = _members(opened.compared.store, found) if members else None
    lines = (
        match_fields(match) | ({} if counted is None else {"members": counted[match.stored.record.reference]})
        for match in found.found
    )
    answer(json=json, lines=lines, text=[match_table(found.found, counted)] if found.found else [])
    errors = render.console(stderr=True)
    for sentence in _sentences(found, items, opened.compared.settings):
        errors.print(sentence)


def _members(store: Store, found: StoredMatches) -> Counter[bytes]:
    kept = frozenset(match.stored.record.reference for match in found.found)
    members: Counter[bytes] = Counter()
    with render.progress(render.console(stderr=True)) as progress:
        task = progress.add_task("counting flagged articles", total=None)
        for so_far in member_counts(store, kept):
            members = so_far
            progress.advance(task)
    return members


def _sentences(found: StoredMatches, items: Banks, settings: JudgeSettings) -> Iterator[str]:
    """Yield how much was found, and what the look-up may have missed."""
    seconds = settings.window_ms // MS_PER_S
    window = counted(seconds // _DAY_S, "day") if seconds % _DAY_S == 0 else f"{seconds / _HOUR_S:g} hours"
    named = "the item" if found.items == 1 else f"any of {found.items:,} items"
    yield f"Kept articles of the last {window} that repeat {named}: {len(found.found):,}."
    if found.truncated:
        yield "There are more: a limit cut the look-up short."
    threshold = settings.similarity_min
    least = min(item.similarity or items.banks[item.bank].item_similarity for item in items.items.values())
    missed = f"Equal texts are found, and nearly all that are at least {threshold:g} similar"
    yield missed + (", but fewer of those below." if least < threshold else ".")
    if not any(bank.action == "deny" for bank in items.banks.values()):
        return
    if found.parts:
        yield (
            "Longer articles that contain an item are found if they were stored with judge.parts and share an anchor "
            "with it; with short items few do."
        )
    else:
        yield "Longer articles that contain an item were not looked for: judge.parts is not set."
    if found.without_text:
        yield f"Without a stored text, and so not searched for parts: {found.without_text:,}."
    yield "dupwatch bank scan compares every article, and finds these."
