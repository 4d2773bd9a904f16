"""``dupwatch bank matches``: look up the stored articles that repeat items of a bank."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from consumer.banks.bank import Banks
from consumer.cli import render
from consumer.cli.banks.options import BankArgument, BanksOption, chosen_items
from consumer.cli.banks.views import match_fields, match_table
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, command_config
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
        typer.Option(
            "--members", help="Also scan the store, and count the flagged articles that repeat each kept article."
        ),
    ] = False,
    json: JsonOption = False,
    store: LastingStoreOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Show which kept articles of the window repeat items of a bank.

    The look-up uses the keys of the store, which is quick but may miss articles; dupwatch bank scan compares every
    article.
    """
    chosen = command_config(config, overrides, store__url=store, banks__url=banks)
    items = chosen_items(read_banks(chosen), bank, item)
    with bound_store(chosen) as opened:
        found = BankLookUp(opened.compared, now_ms).find(items)
        counts = _member_counts(opened.compared.store, found) if members else None
    lines = (
        match_fields(match) | ({} if counts is None else {"members": counts[match.stored.record.reference]})
        for match in found.found
    )
    answer(json=json, lines=lines, text=[match_table(found.found, counts)] if found.found else [])
    errors = render.console(stderr=True)
    for sentence in _sentences(found, items, opened.compared.settings):
        errors.print(sentence)


def _member_counts(store: Store, found: StoredMatches) -> Counter[bytes]:
    kept = frozenset(match.stored.record.reference for match in found.found)
    counts: Counter[bytes] = Counter()
    with render.progress(render.console(stderr=True)) as progress:
        task = progress.add_task("counting flagged articles", total=None)
        for so_far in member_counts(store, kept):
            counts = so_far
            progress.advance(task)
    return counts


def _sentences(found: StoredMatches, items: Banks, settings: JudgeSettings) -> Iterator[str]:
    """Yield sentences on the matches, and on what the look-up may have missed."""
    seconds = settings.window_ms // MS_PER_S
    window = counted(seconds // _DAY_S, "day") if seconds % _DAY_S == 0 else f"{seconds / _HOUR_S:g} hours"
    named = "the item" if found.items == 1 else f"any of {found.items:,} items"
    yield f"Kept articles of the last {window} that repeat {named}: {len(found.found):,}."
    if found.truncated:
        yield "There are more: the look-up stopped at a limit."
    threshold = settings.similarity_min
    least = min(item.similarity or items.banks[item.bank].item_similarity for item in items.items.values())
    coverage = f"Equal texts are found, and nearly all texts with a similarity of at least {threshold:g}"
    yield coverage + (", but fewer of the less similar ones." if least < threshold else ".")
    if not any(bank.action == "deny" for bank in items.banks.values()):
        return
    if found.parts:
        yield (
            "Longer articles that contain an item are found if they were stored with judge.parts and share an anchor "
            "with it. Few articles share an anchor with a short item."
        )
    else:
        yield "Longer articles that contain an item were not looked for: judge.parts is not set."
    if found.without_text:
        yield f"Not searched for parts, because they have no stored text: {found.without_text:,}."
    yield "dupwatch bank scan compares every article, and finds items within longer articles that have a stored text."
