"""Banks of processes that differ, and cases in which they judge the same articles."""

from collections.abc import Iterator, Sequence

import msgspec

from storage.records import ALLOW, DENY, BankMatch, Version

Bank = frozenset[tuple[str, BankMatch]]
"""Which articles, by id, a process finds to repeat which item."""

NOTICE = BankMatch("notices", "closure", ALLOW, "equal", 1.0)
SPAM = BankMatch("spam", "offer", DENY, "part", 0.8)


def bank(allows: Sequence[int] = (), denies: Sequence[int] = ()) -> Bank:
    """Return a bank that knows these articles, by number."""
    return frozenset(
        (f"article {number}", match) for numbers, match in ((allows, NOTICE), (denies, SPAM)) for number in numbers
    )


def with_matches_of(known: Bank, versions: Sequence[Version]) -> list[Version]:
    """Return the versions as a process with this bank would create them."""
    return [
        version._replace(record=msgspec.structs.replace(version.record, bank_matches=_matches(known, version)))
        for version in versions
    ]


def _matches(known: Bank, version: Version) -> tuple[BankMatch, ...] | None:
    matches = [match for name, match in known if name == version.record.id]
    return tuple(sorted(matches, key=lambda match: match.action)) or None


def differing() -> Iterator[tuple[str, Bank, Bank]]:
    """Yield the banks of two processes that judge the articles 0 and 1 of a pair, and more."""
    yield "one allows 0", bank([0]), bank()
    yield "one allows 1", bank([1]), bank()
    yield "one allows 0, one 1", bank([0]), bank([1])
    yield "both allow 1, one denies 0", bank([1]), bank([1], [0])
