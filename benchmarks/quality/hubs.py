"""What one bare frame hides that is posted first: ``python -m benchmarks.quality.hubs --frames tuning``.

A *hub* is a frame with its slots left empty, but for some facts of its own. It is more similar to each notice in that
frame than two notices are to each other, so one hub makes many notices its duplicates. Three measurements:

1. how many notices a hub hides, without the fact guard and by each revision of it;
2. how many copies the guard loses from which a stretch was cut: they have fewer facts than their originals, too;
3. at which similarity two notices count as one without a guard, alone and behind a hub.

Frames are those of ``benchmarks.quality.templates``; the rule was chosen on ``--frames tuning``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from random import Random
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.quality.frames import Frame, Language, Story, fill
from benchmarks.quality.score import wilson
from benchmarks.quality.shingles import normalise
from benchmarks.quality.templates import CHOSEN, Frames, Pair, frames_of, near, settings, stored
from consumer.fingerprint import Fingerprinter, Lexicon
from consumer.judge.settings import FACTS_REVISION, JudgeSettings
from consumer.workers.word_files import load_lexicon

OWN_FACTS: Final = (0, 1, 2)
"""How many slots of a hub are filled."""
SHARED_FACTS: Final = (0, 3, 4, 5, 6)
"""How many facts all notices share with their hub."""
NOTICES: Final = 10
"""How many notices follow one hub."""
CUTS: Final = (0.2, 0.3, 0.4)
"""Shares of the text between which a stretch is cut from a copy."""
_FEW_FACTS_FROM: Final = 6
"""Every fourth frame of a group has few facts: the last two of eight."""
_REFERENCES: Final[dict[Language, str]] = {
    "en": " Please quote the reference {} in all correspondence.",
    "zh": "来函请注明编号{}。",
}
_SEPARATORS: Final[dict[Language, str]] = {"en": ", ", "zh": "、"}
_SHINGLE_CHARS: Final[dict[Language, int]] = {"en": 9, "zh": 5}
_BIN: Final = 0.025
_SHOWN: Final = (0.55, 0.85)
_WIDTH: Final = 110


class HubPair(NamedTuple):
    """A hub and a notice that is near it without a guard, and how the hub was made."""

    pair: Pair
    shared: int
    own: int

    @property
    def few_facts(self) -> bool:
        """Whether the notice has hardly more facts of its own than the frame."""
        return has_few_facts(self.pair.frame)


class CutPair(NamedTuple):
    """A story and a copy of it that lacks this share of the text."""

    pair: Pair
    cut: float


class NoticePair(NamedTuple):
    """Two notices in one frame: how similar they are, exactly, and whether the second is flagged.

    They differ in the slots, or in text ``added`` behind the frame.
    """

    jaccard: float
    alone: bool
    behind_hub: bool
    added: bool


class Judges(NamedTuple):
    """The settings without a guard, and by each of its revisions."""

    off: JudgeSettings
    revisions: tuple[JudgeSettings, ...]


def judges(lexicon: Lexicon, similarity_min: float = 0.75) -> Judges:
    """Return the settings to compare, at the recommended share of facts."""
    off = replace(settings(0.0, lexicon), similarity_min=similarity_min)
    guarded = replace(off, facts_shared_min=CHOSEN)
    return Judges(off, tuple(replace(guarded, facts_revision=number) for number in range(1, FACTS_REVISION + 1)))


def has_few_facts(frame: Frame) -> bool:
    """Return whether the frame has so few slots that two of its stories hardly differ in facts."""
    return frame.number >= _FEW_FACTS_FROM


def bare(story: Story, own: int, random: Random) -> str:
    """Return the text of a story with all slots left empty, except for ``own`` of them."""
    kept = set(random.sample(range(len(story.slots)), own))
    slots = [slot.value if number in kept else "" for number, slot in enumerate(story.slots)]
    return "".join(part for word, slot in zip(story.words, (*slots, ""), strict=True) for part in (word, slot))


def sharing(frame: Frame, facts: int, fingerprinter: Fingerprinter) -> Frame | None:
    """Return a frame whose words have this many facts; None if they have more without its paragraph of figures."""
    lead, *background = frame.text.split("\n")
    text = "\n".join((lead, *(paragraph for paragraph in background if not re.search("[0-9]", paragraph))))
    lacking = facts - len(fingerprinter.facts(bare(fill(frame._replace(text=text), Random(0)), 0, Random(0))))
    if lacking < 0:
        return None
    references = _SEPARATORS[frame.language].join(f"{4471 + 13 * number}" for number in range(lacking))
    return frame._replace(text=text + (_REFERENCES[frame.language].format(references) if lacking else ""))


def cut(text: str, share: float, random: Random) -> str:
    """Return the text without a stretch of this share: a third each lose the beginning, the end or another stretch."""
    chars = round(len(text) * share)
    start = random.choice((0, len(text) - chars, random.randrange(len(text) - chars)))
    return text[:start] + text[start + chars :]


def hub_pairs(which: Frames, seed: int, lexicon: Lexicon) -> list[HubPair]:
    """Return every hub with its notices, as far as they are near without a guard."""
    random, off, fingerprinter = _tools(f"hubs {which.value} {seed}", lexicon)
    found = []
    for shared in SHARED_FACTS:
        for frame in filter(None, (sharing(frame, shared, fingerprinter) for frame in frames_of(which))):
            stories = [fill(frame, random) for _ in range(NOTICES + 1)]
            bodies = [bare(stories[0], own, random) for own in OWN_FACTS] + [story.text for story in stories[1:]]
            records = stored("", bodies, [frame.language] * len(bodies), off, fingerprinter)
            hubs, notices = records[: len(OWN_FACTS)], records[len(OWN_FACTS) :]
            pairs = [(own, Pair(frame, hub, notice)) for own, hub in enumerate(hubs) for notice in notices]
            found += [HubPair(pair, shared, own) for own, pair in pairs if near(pair, off)]
    return found


def cut_pairs(which: Frames, seed: int, lexicon: Lexicon) -> list[CutPair]:
    """Return a story of every frame with a copy for each pair of neighbouring ``CUTS``, drawn between the two."""
    random, off, fingerprinter = _tools(f"cuts {which.value} {seed}", lexicon)
    found = []
    for frame in frames_of(which):
        text = fill(frame, random).text
        shares = [random.uniform(*bounds) for bounds in pairwise(CUTS)]
        bodies = [text, *(cut(text, share, random) for share in shares)]
        story, *copies = stored("", bodies, [frame.language] * len(bodies), off, fingerprinter)
        found += [CutPair(Pair(frame, story, copy), share) for copy, share in zip(copies, shares, strict=True)]
    return found


def notice_pairs(which: Frames, seed: int, lexicon: Lexicon) -> list[NoticePair]:
    """Return pairs of notices, alone and behind a hub, without a guard: two in every frame for each length of it.

    Half of them are fillings of the frame. The others are the frame with text of their own behind it, of 0.1 to 0.4 of
    the frame's length.
    """
    random, off, fingerprinter = _tools(f"notices {which.value} {seed}", lexicon)
    found = []
    for whole in frames_of(which):
        lead, *background = whole.text.split("\n")
        for paragraphs in range(len(background) + 1):
            frame = whole._replace(text="\n".join((lead, *background[:paragraphs])))
            one, other = fill(frame, random), fill(frame, random)
            hub = bare(one, 0, random)
            for added, texts in ((False, [one.text, other.text]), (True, _with_additions(hub, whole, which, random))):
                first, second, third = stored("", [hub, *texts], [frame.language] * 3, off, fingerprinter)
                alone, hidden = near(Pair(frame, second, third), off), near(Pair(frame, first, third), off)
                found.append(NoticePair(_jaccard(texts, frame.language), alone, alone or hidden, added))
    return found


def _with_additions(hub: str, frame: Frame, which: Frames, random: Random) -> list[str]:
    """Return the hub twice, each time with another text behind it that no other frame of its language repeats."""
    others = [each for each in frames_of(which) if each.language == frame.language and each != frame]
    random.shuffle(others)
    texts = [fill(each._replace(text=each.text.partition("\n")[0]), random).text for each in others]
    chars = round(len(hub) * random.uniform(0.1, 0.4))
    return [f"{hub}\n{''.join(half)[:chars]}" for half in (texts[::2], texts[1::2])]


def _tools(seed: str, lexicon: Lexicon) -> tuple[Random, JudgeSettings, Fingerprinter]:
    off = settings(0.0, lexicon)
    return Random(seed), off, Fingerprinter(off.scheme, lexicon)


def _jaccard(texts: Sequence[str], language: Language) -> float:
    a, b = (_shingles(normalise(text), _SHINGLE_CHARS[language]) for text in texts)
    return len(a & b) / len(a | b)


def _shingles(text: str, chars: int) -> set[str]:
    return {text[start : start + chars] for start in range(len(text) - chars + 1)}


def _hub_table(pairs: Sequence[HubPair], by: Judges) -> Table:
    table = Table(
        "own facts", "shared with the hub", "near without a guard",
        *(f"revision {one.facts_revision}, hub with {own}" for one in by.revisions for own in OWN_FACTS),
        title=f"Notices flagged behind a frame with 0, 1 or 2 facts of its own, facts_shared_min = {CHOSEN:g}",
    )  # fmt: skip
    for few in (False, True):
        for shared in SHARED_FACTS:
            group = [each for each in pairs if (each.few_facts, each.shared) == (few, shared)]
            flagged = (
                sum(near(each.pair, settings) for each in group if each.own == own)
                for settings in by.revisions
                for own in OWN_FACTS
            )
            table.add_row("few" if few else "many", f"{shared}", f"{len(group)}", *(f"{number}" for number in flagged))
    return table


def _cut_table(pairs: Sequence[CutPair], lexicon: Lexicon, similarities: Sequence[float]) -> Table:
    table = Table(
        "threshold", "cut", "copies", "found without a guard",
        *(f"of these by revision {number} (95 %)" for number in range(1, FACTS_REVISION + 1)),
        title="Copies from which a stretch was cut, by similarity_min",
    )  # fmt: skip
    for similarity_min in similarities:
        by = judges(lexicon, similarity_min)
        for low, high in pairwise(CUTS):
            copies = [each.pair for each in pairs if low <= each.cut <= high]
            found = [copy for copy in copies if near(copy, by.off)]
            rates = [wilson(sum(near(copy, settings) for copy in found), len(found)) for settings in by.revisions]
            cells = (
                "–" if rate.value is None else f"{rate.value:.3f} ({rate.low:.3f}–{rate.high:.3f})" for rate in rates
            )
            table.add_row(f"{similarity_min:g}", f"{low:.0%}–{high:.0%}", f"{len(copies)}", f"{len(found)}", *cells)
    return table


def _similarity_table(pairs: Sequence[NoticePair], title: str) -> Table:
    table = Table("Jaccard similarity", "pairs", "flagged alone", "flagged behind a hub", title=title)
    for number, group in _bins(pairs):
        low, alone, behind = number * _BIN, sum(each.alone for each in group), sum(each.behind_hub for each in group)
        shares = (alone / len(group), behind / len(group))
        table.add_row(f"{low:.3f}–{low + _BIN:.3f}", f"{len(group)}", *(f"{share:.3f}" for share in shares))
    return table


def _bins(pairs: Sequence[NoticePair]) -> Iterator[tuple[int, list[NoticePair]]]:
    shown = [each for each in pairs if _SHOWN[0] <= each.jaccard < _SHOWN[1]]
    for number, group in groupby(sorted(shown), lambda each: int(each.jaccard / _BIN)):
        yield number, list(group)


def main(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 1 on.")] = 20,
    which: Annotated[Frames, typer.Option("--frames", help="Those the guard was chosen on, or the rest.")] = (
        Frames.HELD_OUT
    ),
) -> None:
    """Print what a bare frame hides, what the guard against it costs, and what it does without a guard."""
    lexicon = load_lexicon()
    console = Console(width=_WIDTH)
    every = range(1, seeds + 1)
    hubs = [pair for seed in every for pair in hub_pairs(which, seed, lexicon)]
    console.print(_hub_table(hubs, judges(lexicon)))
    cuts = [pair for seed in every for pair in cut_pairs(which, seed, lexicon)]
    console.print(_cut_table(cuts, lexicon, (0.75, 0.5)))
    notices = [pair for seed in every for pair in notice_pairs(which, seed, lexicon)]
    for added, kind in ((False, "other facts"), (True, "text behind the frame")):
        title = f"Two notices in one frame with {kind}, without a guard"
        console.print(_similarity_table([pair for pair in notices if pair.added is added], title))


if __name__ == "__main__":
    typer.run(main)
