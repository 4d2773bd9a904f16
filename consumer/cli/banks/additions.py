"""What ``dupwatch bank add`` does, and what it says about it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from consumer.banks.bank import BankItem, Banks, Entry
from consumer.banks.changes import replacement
from consumer.cli.banks.options import changed
from consumer.config.config import Config
from consumer.wiring.stores import outlives_run
from storage.clock import now_ms


def options(given: Mapping[str, str | None]) -> str:
    """Return those options that were given, for a command to copy; each begins with a space."""
    return "".join(f" {name} {shlex.quote(value)}" for name, value in given.items() if value)


def add_item(config: Config, entry: BankItem, given: Mapping[str, str | None]) -> Iterator[str]:
    """Add an item, or replace one; yield sentences about what was done. Raises ``BankError``.

    ``given`` are the options that name the banks and the store.
    """
    found: list[Banks] = []

    def added(banks: Banks) -> Sequence[Entry]:
        found.append(banks)
        return [replacement(banks, entry)]

    changed(config, "add", f"{entry.bank}/{entry.item}", added)
    (before,) = found
    if entry.key in before.items:
        yield f"Replaced {entry.item} in the bank {entry.bank}; options that were not given have their defaults."
    else:
        yield f"Added {entry.item} to the bank {entry.bank}."
    if not before.banks[entry.bank].enabled:
        banks = options({"--banks": given["--banks"]})
        yield f"The bank is disabled, so nothing is compared with it: dupwatch bank enable {entry.bank}{banks}"
    elif not before.after([entry]).only(*entry.key).items_at(now_ms()):
        yield f"Nothing is compared with it: it ended at {entry.until}."
    elif outlives_run(config):
        yield (f"See which stored articles repeat it: dupwatch bank matches {entry.bank} {entry.item}{options(given)}")
