"""The output of ``dupwatch stress``, as text and as JSON."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table

from consumer.cli import render
from consumer.stress.trial import LATE_S, NAMED_MAX, Report, WaitPercentiles
from consumer.text.counts import counted
from storage.clock import MS_PER_S

_COLUMNS: Final = ("p50", "p90", "p99", "p99.9", "max")


def json_fields(run: str, seed: int, report: Report) -> dict[str, Any]:
    """Return the whole output as a value for JSON."""
    return {
        "run": run,
        "seed": seed,
        "planned": report.planned,
        "sent": report.sent,
        "copies": report.copies,
        "copies_flagged": report.copies_flagged,
        "others_flagged": report.originals_flagged,
        "late": report.late,
        "late_by_ms": _milliseconds(report.late_by_s),
        "latency": _wait_fields(report.waits),
        "minutes": [_wait_fields(minute) for minute in report.minutes],
        "refused": {str(status): count for status, count in sorted(report.refused.items())},
        "failed": report.failed,
        "without_verdict": report.missing,
        "verdicts_of_others": report.foreign,
        "repeated_verdicts": report.repeated,
    }


def _wait_fields(waits: WaitPercentiles) -> dict[str, Any]:
    values = [_milliseconds(seconds) if waits.articles else None for seconds in waits[1:]]
    return {"articles": waits.articles, **{f"{name}_ms": value for name, value in zip(_COLUMNS, values, strict=True)}}


def _milliseconds(seconds: float) -> float:
    return round(seconds * MS_PER_S, 3)


def text(run: str, seed: int, report: Report) -> Iterator[RenderableType]:
    """Yield a table of times, with a row for each minute of a longer run, and a table of counts."""
    if report.waits.articles:
        yield _wait_table(report)
    yield render.value_table(f"Run {run}, seed {seed}", _counts(report))


def _wait_table(report: Report) -> Table:
    minutes = enumerate(report.minutes, 1) if len(report.minutes) > 1 else ()
    rows = chain([("all", report.waits)], ((f"minute {number}", waits) for number, waits in minutes))
    return render.table(
        render.number_columns("", "articles", *_COLUMNS),
        (
            (name, f"{waits.articles:,}", *(f"{_milliseconds(seconds):,.1f}" for seconds in waits[1:]))
            for name, waits in rows
            if waits.articles
        ),
        "Time from arrival to verdict, ms",
    )


def _counts(report: Report) -> Iterator[tuple[str, int | str]]:
    """Yield the counts: the first ones always, others if they are not 0."""
    yield "articles sent", report.sent
    yield "  copies", report.copies
    yield "  copies flagged", report.copies_flagged
    yield from _nonzero("  others flagged", report.originals_flagged)
    if report.late:
        late_by = f"by up to {_milliseconds(report.late_by_s):,.0f} ms"
        yield f"sent over {_milliseconds(LATE_S):g} ms late", f"{report.late:,}, {late_by}"
    yield from _nonzero("not sent", report.planned - report.sent)
    for status, count in sorted(report.refused.items()):
        yield f"refused with {status}", count
    for reason, count in report.failed.items():
        yield f"failed: {render.plain(reason)}", count
    yield "without a verdict", len(report.missing)
    yield from _nonzero("verdicts on other articles", report.foreign)
    yield from _nonzero("repeated verdicts", report.repeated)


def _nonzero(name: str, count: int) -> Iterator[tuple[str, int]]:
    if count:
        yield name, count


def missing_sentence(report: Report) -> str:
    """Return which articles have no verdict."""
    named = ", ".join(report.missing[:NAMED_MAX])
    others = f" and {len(report.missing) - NAMED_MAX:,} more" if len(report.missing) > NAMED_MAX else ""
    return f"{counted(len(report.missing), 'article')} got no verdict: {named}{others}"
