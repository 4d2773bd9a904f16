"""Output for a terminal. Text of articles is never interpreted as markup, and its control characters are replaced."""

from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from consumer.judge.tally import Tally
from consumer.model.verdict import BankMention, EndedBefore, Part, Released, SeenBefore, Verdict
from consumer.text.counts import counted
from consumer.text.shown_keywords import shown_keywords
from consumer.text.visible import one_line
from consumer.workers.engines import ChosenEngine
from storage.records import ALLOW, Record

KEYWORDS_SHOWN_MAX = 20
_TITLE_CHARS_MAX = 60


def plain(text: str, chars_max: int | None = None) -> str:
    """Return the text on one line, with control and invisible characters replaced, cut to ``chars_max``."""
    return one_line(text, len(text) if chars_max is None else chars_max)


def abridge(text: str, chars_max: int) -> str:
    """Return the text on one line. Of a text longer than ``chars_max``, return only the beginning and the end."""
    half = chars_max // 2
    if len(text) <= chars_max:
        return plain(text.replace("\n", " "))
    return f"{plain(text[:half].replace(chr(10), ' '))} … {plain(text[-half:].replace(chr(10), ' '))}"


def console(*, stderr: bool = False) -> Console:
    """Return a console that interprets no markup, and wraps lines only on a terminal.

    It does not highlight: rich would colour numbers and names within paths and ids.
    """
    created = Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not created.is_terminal:
        created.soft_wrap = True
    return created


def progress(console: Console) -> Progress:
    """Return a progress bar that disappears when the work is done, and shows nothing without a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def follow(bars: Progress, name: str, done_and_total: Callable[[], tuple[int, int | None]]) -> Callable[..., None]:
    """Add a bar, and return a function that updates the bar and ignores its arguments.

    ``done_and_total`` returns the work done and the whole work, which is None if unknown.
    """
    done, total = done_and_total()
    task = bars.add_task(name, total=total, completed=done)

    def update(*_: object) -> None:
        done, total = done_and_total()
        bars.update(task, completed=done, total=total)

    return update


def similarity_text(similarity: float | None) -> str:
    """Return a similarity as text. None means that none was estimated, as with plain SimHash."""
    return "similarity –" if similarity is None else f"similarity {similarity:.2f}"


def flag_lines(verdict: Verdict, title: str, other_title: str) -> RenderableType:
    """Return a flag in four lines: the article, the article that it repeats, the measures, and the shared keywords."""
    head = Text.assemble(
        ("≈ ", "bold yellow"), (plain(verdict.id), "bold"), "  ", (plain(title, _TITLE_CHARS_MAX), "dim")
    )
    other = Text.assemble(
        "  repeats ",
        (plain(verdict.duplicate_of or ""), "bold cyan"),
        "  ",
        (plain(other_title, _TITLE_CHARS_MAX), "dim"),
    )
    measures = f"  distance {counted(verdict.distance or 0, 'bit')}, {similarity_text(verdict.similarity)}"
    if verdict.truncated:
        measures += ", search truncated by a limit"
    shared = f"  shared keywords: {'  '.join(map(plain, shown_keywords(verdict.shared_keywords)))}"
    return Group(head, other, Text(measures, "green"), Text(shared, "dim"))


def part_lines(article_id: str, found: Sequence[Part]) -> RenderableType:
    """Return a kept article and the parts that it shares with earlier articles, one line each."""
    head = Text.assemble(("◐ ", "bold cyan"), (plain(article_id), "bold"))
    return Group(head, *(Text(f"  {plain(part_text(part))}", "green") for part in found))


def ended_before_line(article_id: str, found: EndedBefore) -> RenderableType:
    """Return a line on a kept article and the ended text that it repeats."""
    return Text.assemble(
        ("↺ ", "bold magenta"), (plain(article_id), "bold"), "  ", (plain(ended_before_text(found)), "magenta")
    )


def bank_lines(article_id: str, mentions: Sequence[BankMention]) -> RenderableType:
    """Return an article and the items of banks that it repeats, one line each."""
    head = Text.assemble(("■ ", "bold red"), (plain(article_id), "bold"))
    return Group(head, *(Text(f"  {plain(bank_text(mention))}", "red") for mention in mentions))


def summary(tally: Tally, dead_letters: int, seconds: float, engine: ChosenEngine) -> Table:
    """Return the summary of a run."""
    judged = max(tally.versions, 1)
    rare = {
        "search truncated by a limit": tally.truncated,
        "with a crowded fingerprint": tally.crowded_articles,
        "lost compare-and-sets": tally.lost_compare_and_sets,
    }
    return value_table(
        "Summary",
        {
            "articles": f"{tally.versions}",
            "  unique": f"{tally.kept}",
            **({"    without keywords": f"{tally.without_keywords}"} if tally.without_keywords else {}),
            "  duplicates": f"{tally.duplicates}",
            "retractions": f"{tally.retractions}",
            "dead letters": f"{dead_letters}",
            **({"already judged": f"{tally.replays}"} if tally.replays else {}),
            "articles per second": f"{tally.versions / max(seconds, 1e-9):,.0f}",
            "engine": plain(engine.description),
            "posting rows read per article": f"{tally.row_reads / judged:.1f}",
            "records read per article": f"{tally.record_reads / judged:.1f}",
            **{name: f"{count}" for name, count in rare.items() if count},
        }.items(),
    )


def table(
    columns: Iterable[Column | str],
    rows: Iterable[Iterable[RenderableType]],
    title: str | None = None,
    header_style: str = "table.header",
) -> Table:
    """Return a table without lines. The name of a column is enough if the column needs no format."""
    shown = Table(
        *columns,
        title=title,
        title_justify="left",
        title_style="bold",
        header_style=header_style,
        box=None,
        pad_edge=False,
    )
    for row in rows:
        shown.add_row(*row)
    return shown


def number_columns(*names: str) -> list[Column]:
    """Return right-aligned columns for numbers, which do not wrap."""
    return [Column(name, justify="right", no_wrap=True) for name in names]


def value_table(title: str, rows: Iterable[tuple[str, str | int | Text]]) -> Table:
    """Return a table of names and values; whole numbers get thousands separators."""
    shown = table(
        [Column(no_wrap=True), Column(justify="right", overflow="fold")],
        ((name, f"{value:,}" if isinstance(value, int) else value) for name, value in rows),
        plain(title),
    )
    shown.show_header = False
    return shown


def record_table(record: Record, verdict: Verdict | None, in_force: str) -> Table:
    """Return a stored version and its verdict as a table. ``in_force`` says since when, or why no longer."""
    table = Table(
        Column(style="dim", no_wrap=True),
        Column(overflow="fold"),
        title=plain(record.id),
        show_header=False,
        box=None,
        title_justify="left",
        title_style="bold",
    )
    rows = {
        "title": record.title,
        "source": record.source,
        "url": record.url,
        "language": record.lang,
        "version": record.reference[16:].hex(),
        "fingerprint": record.fingerprint.hex(),
        "in force": in_force,
        "keywords": "  ".join(word for word, _ in record.keywords[:10]),
        "verdict": "pending" if verdict is None else verdict.outcome,
    }
    if verdict is not None:
        rows["decided"] = verdict.decided_at
        if isinstance(verdict.seen_before, SeenBefore):
            rows["seen before"] = seen_before_text(verdict.seen_before)
        if isinstance(verdict.parts, tuple):
            rows["parts"] = "\n".join(map(part_text, verdict.parts))
        if isinstance(verdict.ended_before, EndedBefore):
            rows["ended before"] = ended_before_text(verdict.ended_before)
        if isinstance(verdict.banks, tuple):
            rows["banks"] = "\n".join(map(bank_text, verdict.banks))
        if isinstance(verdict.released, Released):
            released = verdict.released
            rows["released from"] = f"{released.duplicate_of}, flagged {released.flagged_at}"
            rows |= {"released by": released.by or "", "reason": released.reason or ""}
    for name, value in rows.items():
        if value:
            table.add_row(name, plain(value))
    return table


def seen_before_text(seen: SeenBefore) -> str:
    """Return as text how often and when the same text was seen before."""
    if seen.times == 1:
        return f"once, {seen.first}"
    return f"at least {seen.times:,} times, first {seen.first}, last {seen.last}"


def ended_before_text(ended: EndedBefore) -> str:
    """Return a phrase on the retracted or replaced text that an article repeats, with its end and the similarity."""
    return f"repeats the text of {ended.id}, which ended at {ended.ended_at}, {similarity_text(ended.similarity)}"


def part_text(part: Part) -> str:
    """Return a phrase on the part that an article shares with an earlier article."""
    return f"{part.share_of_this:.0%} of it is in {part.id}, {part.share_of_that:.0%} of {part.id} is in it"


def bank_text(mention: BankMention) -> str:
    """Return a phrase on the bank item that an article repeats, the form of the match, and the action of the bank."""
    how = {
        "equal": "equals",
        "similar": f"{similarity_text(mention.similarity)} to",
        "part": f"contains {mention.similarity:.0%} of",
    }[mention.form]
    effect = "allowed, never flagged" if mention.action == ALLOW else "denied"
    return f"{how} {mention.item} of the bank {mention.bank}: {effect}"


def facts_line(name: str, facts: Sequence[str]) -> Text:
    """Return the facts on one line, or a dash."""
    return Text.assemble((f"{name}: ", "bold"), plain("  ".join(facts)) or "–")


def keywords_line(words: Sequence[str]) -> Text:
    """Return the first few of the shared keywords that tell readers something, on one line."""
    shown = shown_keywords(words)[:KEYWORDS_SHOWN_MAX]
    return Text.assemble(("shared keywords: ", "bold"), plain("  ".join(shown)) if shown else "none")
