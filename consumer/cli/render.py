"""What a person sees on a terminal. Nothing of an article is markup here, and none of its control characters pass."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from consumer.judge.tally import Tally
from consumer.model.verdict import Released, Verdict
from consumer.text.visible import one_line
from storage.records import Record

_TITLE_CHARS_MAX = 60


def plain(text: str, chars_max: int | None = None) -> str:
    """Text that cannot steer a terminal: what is not seen becomes a replacement mark."""
    return one_line(text, len(text) if chars_max is None else chars_max)


def console(*, stderr: bool = False) -> Console:
    """A console to which no text is markup, and which does not break lines where nobody looks at them."""
    made = Console(stderr=stderr, markup=False, emoji=False)
    if not made.is_terminal:
        made.soft_wrap = True
    return made


def progress(on: Console) -> Progress:
    """A bar for long work: shown on a terminal, gone when the work is done, and nothing anywhere else."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=on,
        transient=True,
        disable=not on.is_terminal,
    )


def similarity_text(similarity: float | None) -> str:
    """A similarity as people read it; nothing was estimated with plain SimHash."""
    return "similarity –" if similarity is None else f"similarity {similarity:.2f}"


def flag(verdict: Verdict, title: str, other_title: str) -> RenderableType:
    """One flag in three lines: who repeats whom, how alike they are, what they share."""
    head = Text.assemble(
        ("≈ ", "bold yellow"), (plain(verdict.id), "bold"), "  ", (plain(title, _TITLE_CHARS_MAX), "dim")
    )
    other = Text.assemble(
        "  repeats ",
        (plain(verdict.duplicate_of or ""), "bold cyan"),
        "  ",
        (plain(other_title, _TITLE_CHARS_MAX), "dim"),
    )
    measures = f"  distance {verdict.distance} bits, {similarity_text(verdict.similarity)}"
    if verdict.truncated:
        measures += ", search cut short by a limit"
    shared = f"  both say: {'  '.join(plain(word) for word in verdict.shared_keywords)}"
    return Group(head, other, Text(measures, "green"), Text(shared, "dim"))


def summary(tally: Tally, dead_letters: int, seconds: float) -> Table:
    """What a run came to."""
    table = pairs("Summary")
    judged = max(tally.versions, 1)
    table.add_row("articles", f"{tally.versions}")
    table.add_row("  unique", f"{tally.kept}")
    if tally.without_keywords:
        table.add_row("    without keywords", f"{tally.without_keywords}")
    table.add_row("  duplicates", f"{tally.duplicates}")
    table.add_row("retractions", f"{tally.retractions}")
    table.add_row("dead letters", f"{dead_letters}")
    if tally.replays:
        table.add_row("judged before", f"{tally.replays}")
    table.add_row("articles a second", f"{tally.versions / max(seconds, 1e-9):,.0f}")
    table.add_row("posting rows read an article", f"{tally.row_reads / judged:.1f}")
    table.add_row("records read an article", f"{tally.record_reads / judged:.1f}")
    if tally.truncated:
        table.add_row("judged under a limit", f"{tally.truncated}")
    if tally.crowded_articles:
        table.add_row("with a crowded fingerprint", f"{tally.crowded_articles}")
    if tally.lost_compare_and_sets:
        table.add_row("lost compare-and-sets", f"{tally.lost_compare_and_sets}")
    return table


def pairs(title: str) -> Table:
    """A table of names and values."""
    table = Table(
        title=plain(title), show_header=False, box=None, title_justify="left", title_style="bold", pad_edge=False
    )
    table.add_column(no_wrap=True)
    table.add_column(justify="right", overflow="fold")
    return table


def record_table(record: Record, verdict: Verdict | None, ends: str) -> Table:
    """A stored version and what was said of it."""
    table = Table(title=plain(record.id), show_header=False, box=None, title_justify="left", title_style="bold")
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    rows = {
        "title": record.title,
        "source": record.source,
        "url": record.url,
        "language": record.lang,
        "version": record.reference[16:].hex(),
        "fingerprint": record.fingerprint.hex(),
        "in force": ends,
        "keywords": "  ".join(word for word, _ in record.keywords[:10]),
        "verdict": "pending" if verdict is None else verdict.outcome,
    }
    if verdict is not None:
        rows["decided"] = verdict.decided_at
        if isinstance(verdict.released, Released):
            rows |= _release_rows(verdict.released)
    for name, value in rows.items():
        if value:
            table.add_row(name, plain(value))
    return table


def _release_rows(released: Released) -> dict[str, str]:
    """What a person undid; who and why only where that was told."""
    return {
        "released from": f"{released.duplicate_of}, flagged {released.flagged_at}",
        "released by": released.by or "",
        "reason": released.reason or "",
    }


def facts_line(name: str, facts: Sequence[str]) -> Text:
    """Some facts, or that there are none."""
    return Text.assemble((f"{name}: ", "bold"), plain("  ".join(facts)) or "–")


def keywords_line(words: Sequence[str]) -> Text:
    """Shared keywords, or that there are none."""
    return Text.assemble(("both say: ", "bold"), plain("  ".join(words)) if words else "nothing they share by keyword")
