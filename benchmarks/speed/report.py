"""What a measurement found: a table for people, and JSON lines for comparing machines and versions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.speed.harness import Spread
from benchmarks.speed.machine import machine

OUT = Path("out/bench")
_WIDTH = 160
_BRIEF_FROM = 1000
_ONE_DECIMAL_FROM = 10

Row = Mapping[str, Any]


def publish(part: str, title: str, rows: Sequence[Row], *, out: Path = OUT, **arguments: object) -> Path:
    """Print rows of equal columns as a table and append them to ``<out>/<part>.jsonl``; return that file's path.

    Each line also has the part, the date, the arguments and the machine, so that a line stands for itself.
    """
    console = Console()
    # Into a file or a pipe a line may be as long as the table is wide.
    console.width = console.width if console.is_terminal else _WIDTH
    console.print(_table(title, rows))
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{part}.jsonl"
    date, here = datetime.now(UTC).isoformat(timespec="seconds"), machine()
    encoder = msgspec.json.Encoder()
    with path.open("ab") as lines:
        for row in rows:
            line = {"part": part, "table": title, "date": date, "row": row, "arguments": arguments, "machine": here}
            lines.write(encoder.encode(line) + b"\n")
    return path


def tell(text: str) -> None:
    """Say on the terminal what is being done, or what the table above does not show."""
    Console(stderr=True).print(text, highlight=False)


def _table(title: str, rows: Sequence[Row]) -> Table:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(title=title)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in columns))
    return table


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, Spread):
        return f"{_number(value.median)}  ({_number(value.low)} – {_number(value.high)})"
    return _number(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _number(value: float) -> str:
    if abs(value) >= _BRIEF_FROM:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= _ONE_DECIMAL_FROM else f"{value:.3g}"
