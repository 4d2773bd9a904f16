"""The changes of ``dupwatch bank create`` and ``add``, and the sentences about them."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from consumer.banks.bank import Bank, BankItem, Banks, Entry
from consumer.banks.changes import keep_if_same, replacement
from consumer.cli.banks.options import change_banks
from consumer.config.config import Config
from consumer.wiring.stores import outlives_run
from storage.clock import now_ms


def option_text(values: Mapping[str, str | None]) -> str:
    """Return the options that have a value, each after a space, for the end of a command that the user can copy."""
    return "".join(f" {name} {shlex.quote(value)}" for name, value in values.items() if value)


def create_bank(config: Config, entry: Bank, banks: str) -> Iterator[str]:
    """Create a bank or change one, and yield sentences on the result. A change does not enable or disable the bank.

    ``banks`` is the option that names the banks, for printed commands. Raises ``BankError``.
    """
    found: list[Bank | None] = []

    def create_entry(every: Banks) -> Sequence[Entry]:
        before = every.banks.get(entry.bank)
        found.append(before)
        after = entry if before is None else msgspec.structs.replace(entry, enabled=before.enabled)
        return [] if keep_if_same(before, after) is before else [after]

    entries, (before,) = change_banks(config, "create", entry.bank, create_entry), found
    if before is None:
        effect = (
            "keeps articles that repeat its texts from being flagged"
            if entry.action == "allow"
            else "reports articles that repeat its texts"
        )
        yield f"The bank {entry.bank} {effect}. Add a text: dupwatch bank add {entry.bank} FILE{banks}"
    elif entries:
        yield f"Changed the bank {entry.bank}; options that were not given have their defaults."
    else:
        yield f"The bank {entry.bank} already exists; nothing was changed."
    if before is not None and not before.enabled:
        yield f"It is disabled. To enable it: dupwatch bank enable {entry.bank}{banks}"


def add_item(config: Config, entry: BankItem, places: Mapping[str, str | None]) -> Iterator[str]:
    """Add an item or replace one, and yield sentences on the result. Raises ``BankError``.

    ``places`` are the options that name the banks and the store, for printed commands.
    """
    found: list[Banks] = []

    def add_entry(banks: Banks) -> Sequence[Entry]:
        found.append(banks)
        return [replacement(banks, entry)]

    change_banks(config, "add", f"{entry.bank}/{entry.item}", add_entry)
    (before,) = found
    if entry.key in before.items:
        yield f"Replaced {entry.item} in the bank {entry.bank}; options that were not given have their defaults."
    else:
        yield f"Added {entry.item} to the bank {entry.bank}."
    if not before.banks[entry.bank].enabled:
        banks = option_text({"--banks": places["--banks"]})
        yield (
            "The bank is disabled, so articles are not compared with it. To enable it: dupwatch bank enable "
            f"{entry.bank}{banks}"
        )
    elif not before.after([entry]).only(*entry.key).items_at(now_ms()):
        yield f"Articles are not compared with it: it ended at {entry.until}."
    elif outlives_run(config):
        more = option_text(places)
        yield f"See which stored articles repeat it: dupwatch bank matches {entry.bank} {entry.item}{more}"
