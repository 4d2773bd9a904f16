"""Count the states of every case, for docs/contributing/protocol.md: ``python -m tests.protocol.count_states``."""

import sys
from time import process_time

from tests.protocol.cases import FAMILIES


def main() -> int:
    """Print a table for each family of cases; return 1 where a promise is broken."""
    broken = 0
    for family, cases in FAMILIES.items():
        rows = []
        began_s = process_time()
        for case in cases():
            explored = case.explored()
            broken += bool(explored.wrong)
            rows.append(
                (
                    case.name.replace("|", "\\|"),
                    case.crashes,
                    explored.states,
                    explored.ends,
                    "; ".join(explored.wrong) or "clean",
                )
            )
        states, took_s = sum(row[2] for row in rows), process_time() - began_s
        sys.stdout.write(f"\n{family}: {len(rows)} cases, {states:,} states, {took_s:.1f} s\n\n")
        sys.stdout.write("| case | crashes | states | ends | |\n|---|---|---|---|---|\n")
        sys.stdout.writelines(
            f"| {name} | {crashes} | {n:,} | {ends:,} | {how} |\n" for name, crashes, n, ends, how in rows
        )
        sys.stdout.flush()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
