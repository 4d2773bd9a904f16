"""Near-identical frames with other facts against light rewrites: ``python -m benchmarks.quality.templates --seed N``.

*Template pairs* are two fillings of one frame: another company and quarter, another town, or, in every third pair, the
same one at another time. They are two stories, and a flag is wrong. *Rewrites* are a filling and its correction: one
figure, one name or one date is another, and up to three things are said in other words. They are one story, and a miss
is wrong. Only template pairs that are near without the fact guard count: what similarity tells apart proves nothing.

Every other frame was used to choose the fact guard's rule and threshold (``--frames tuning``); figures are reported for
the rest (``held-out``), which were first looked at when both were chosen. The slot guard was chosen on neither. Bare
frames: ``benchmarks.quality.hubs``.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from itertools import count
from random import Random
from typing import Annotated, Final, Literal, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.quality.frames import GROUPS, LANGUAGES, Frame, Language, fill, frames, rewrite
from benchmarks.quality.score import Rate, wilson
from consumer.fingerprint import BlockPlan, Fingerprinter, Lexicon, Scheme
from consumer.judge.comparison import compare
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from consumer.workers.word_files import load_lexicon
from storage.records import StoredVersion

THRESHOLDS: Final = (0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""Of the curve; 0 is no guard."""
CHOSEN: Final = 0.8
"""What is recommended."""
SLOTS: Final = "slots"
"""The slot guard, which has no threshold."""
Guard = float | Literal["slots"]
"""A threshold of the fact guard, or the slot guard."""
_ROUND: Final = 64
_WIDTH: Final = 110
_LASTING_SHARE: Final = 1 / 3


class Frames(Enum):
    """Which frames: those that the guard was chosen on, or the others."""

    TUNING = "tuning"
    HELD_OUT = "held-out"


class Pair(NamedTuple):
    """Two records that are judged, of texts made from one frame."""

    frame: Frame
    first: StoredVersion
    other: StoredVersion


class Pairs(NamedTuple):
    """Template pairs near without a guard, found among ``drawn`` ones, and rewrites of as many of their stories."""

    templates: list[Pair]
    drawn: int
    rewrites: list[Pair]
    rewrites_of_two: list[Pair]


class Point(NamedTuple):
    """What a guard does: template pairs flagged, rewrites found, with one fact and with two facts corrected."""

    guard: Guard
    flagged: int
    found: int
    found_of_two: int
    precision: Rate
    recall: Rate


class _Texts(NamedTuple):
    """A story, another one in the same frame, and the first rewritten, with one fact and with two corrected."""

    frame: Frame
    bodies: tuple[str, str, str, str]


def settings(guard: Guard, lexicon: Lexicon) -> JudgeSettings:
    """Return the defaults with this guard."""
    scheme = Scheme(slots=True) if guard == SLOTS else Scheme(facts=True)
    plan = BlockPlan.named("4x16", scheme.bits)
    unguarded = JudgeSettings(plan, scheme.digest(lexicon), scheme)
    return replace(unguarded, slot_conflicts_max=0) if guard == SLOTS else replace(unguarded, facts_shared_min=guard)


def make_pairs(which: Frames, wanted: int, seed: int, lexicon: Lexicon, guard: Guard = 0.0) -> Pairs:
    """Make pairs until this many template pairs are near without a guard, all frames in turn, as the seed has it.

    Records have what the guard compares.
    """
    random = Random(f"{which.value} {seed}")
    chosen = frames_of(which)
    judged_by = replace(settings(guard, lexicon), facts_shared_min=0.0, slot_conflicts_max=None)
    fingerprinter = Fingerprinter(judged_by.scheme, lexicon)
    pairs = Pairs([], 0, [], [])
    for start in count(0, _ROUND):
        texts = [_texts(chosen[number % len(chosen)], random) for number in range(start, start + _ROUND)]
        languages = [text.frame.language for text in texts]
        columns = [
            stored(f"{column}", [text.bodies[column] for text in texts], languages, judged_by, fingerprinter)
            for column in range(4)
        ]
        for number, (story, *others) in enumerate(zip(*columns, strict=True)):
            template, rewritten, twice = (Pair(texts[number].frame, story, other) for other in others)
            if near(template, judged_by):
                pairs.templates.append(template)
                pairs.rewrites.append(rewritten)
                pairs.rewrites_of_two.append(twice)
            if len(pairs.templates) == wanted:
                return pairs._replace(drawn=start + number + 1)
    raise AssertionError("count() does not end")


def _texts(frame: Frame, random: Random) -> _Texts:
    story = fill(frame, random)
    other = fill(frame, random, story.lasting if random.random() < _LASTING_SHARE else None)
    return _Texts(frame, (story.text, other.text, rewrite(story, random).text, rewrite(story, random, 2).text))


def frames_of(which: Frames) -> list[Frame]:
    """Return the frames that the guard was chosen on, or the others."""
    return [frame for frame in frames() if frame.number % 2 == (which is Frames.HELD_OUT)]


def stored(
    name: str,
    bodies: Sequence[str],
    languages: Sequence[Language],
    judged_by: JudgeSettings,
    fingerprinter: Fingerprinter,
) -> list[StoredVersion]:
    """Return texts as a store would hold them, each under an id of its own that begins with the name."""
    articles = [
        Article(id=f"{name} {number}", body=body, lang=language)
        for number, (body, language) in enumerate(zip(bodies, languages, strict=True))
    ]
    builder = VersionBuilder(judged_by.scheme.name, judged_by.plan, judged_by.lane1)
    arrivals = [ArrivalTime(0, number) for number in range(len(bodies))]
    versions = builder.versions(articles, arrivals, fingerprinter.fingerprint(bodies, languages))
    return [StoredVersion(version.record, None, None) for version in versions]


def near(pair: Pair, judged_by: JudgeSettings) -> bool:
    """Whether the judge would flag the one for the other."""
    return compare(pair.first, [pair.other], judged_by)[0].near


def curve(pairs: Pairs, lexicon: Lexicon, guards: Sequence[Guard] = THRESHOLDS) -> list[Point]:
    """Return what each guard does; pairs must have what it compares."""
    points = []
    for guard in guards:
        judged_by = settings(guard, lexicon)
        flagged, found, of_two = (
            sum(near(pair, judged_by) for pair in some)
            for some in (pairs.templates, pairs.rewrites, pairs.rewrites_of_two)
        )
        precision, recall = wilson(found, found + flagged), wilson(found, len(pairs.rewrites))
        points.append(Point(guard, flagged, found, of_two, precision, recall))
    return points


def _curve_table(points: Sequence[Point], pairs: Pairs) -> Table:
    table = Table(
        "guard", "templates flagged", "precision", "95 %", "rewrites found", "95 %", "two facts corrected",
        title=f"{len(pairs.templates)} template pairs near without a guard ({pairs.drawn} drawn), as many rewrites",
    )  # fmt: skip
    for point in points:
        table.add_row(
            f"{point.guard}" if point.guard else "off",
            f"{point.flagged}",
            *_rate(point.precision),
            *_rate(point.recall),
            f"{point.found_of_two / len(pairs.rewrites_of_two):.3f}",
        )
    return table


def _group_table(pairs: Pairs, guard: Guard, lexicon: Lexicon) -> Table:
    judged_by = settings(guard, lexicon)
    table = Table(
        "frames", "language", "template pairs", "still flagged", "rewrites", "found",
        title=f"By kind of text, guard {guard}",
    )  # fmt: skip
    for group in GROUPS:
        for language in LANGUAGES:
            templates, rewrites = (
                [near(pair, judged_by) for pair in some if (pair.frame.group, pair.frame.language) == (group, language)]
                for some in (pairs.templates, pairs.rewrites)
            )
            counts = (len(templates), sum(templates), len(rewrites), sum(rewrites))
            table.add_row(group, language, *(f"{number}" for number in counts))
    return table


def _rate(rate: Rate) -> tuple[str, str]:
    return "–" if rate.value is None else f"{rate.value:.3f}", f"{rate.low:.3f}–{rate.high:.3f}"


def main(
    seed: Annotated[int, typer.Option(help="Equal seeds make equal pairs.")] = 1,
    pairs: Annotated[int, typer.Option(min=1, help="How many template pairs have to be near without a guard.")] = 600,
    which: Annotated[Frames, typer.Option("--frames", help="Those the guard was chosen on, or the rest.")] = (
        Frames.HELD_OUT
    ),
) -> None:
    """Print what both guards do to template pairs and to light rewrites, for a range of thresholds."""
    lexicon = load_lexicon()
    with_facts, with_slots = (make_pairs(which, pairs, seed, lexicon, guard) for guard in (CHOSEN, SLOTS))
    console = Console(width=_WIDTH)
    console.print(_curve_table([*curve(with_facts, lexicon), *curve(with_slots, lexicon, [SLOTS])], with_facts))
    console.print(_group_table(with_facts, CHOSEN, lexicon))
    console.print(_group_table(with_slots, SLOTS, lexicon))


if __name__ == "__main__":
    typer.run(main)
