"""What letters a spammer changes to hide a copy, knowing everything except the secret of the store.

``python -m benchmarks.quality.greedy FEED``: of texts of 400 to 1,200 letters 2 to 26 are changed, in three ways:

- *evenly*: evenly spaced, the best that can be done blindly;
- *published*: those that take the most minima from the sketch by the published key, one after the other, judged with
  other secrets: what an attacker can compute;
- *known*: the same, judged with the published key: what it would do if there were no secret.

A copy is hidden if it is not flagged as a copy of its text. ``--calls`` measures instead what the answers of ``check``
give away, which shows similarities: the attacker tries letters one by one, and changes those whose change lowered the
answer most. For each number of calls a text it says how many letters of 500 hide half of the texts.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.quality.feed import read_lines
from benchmarks.quality.judging import KEYED, default_settings, judged, lexicon, some_secret, versions_of
from benchmarks.quality.short_texts import Text
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.fingerprint import PUBLISHED_SECRET, Secret
from consumer.fingerprint.forms import forms_of
from consumer.fingerprint.shingles import hashed_chunks

PART: Final = "greedy"
LETTERS_MIN: Final = 400
LETTERS_MAX: Final = 1_200
CALLED_LETTERS: Final = 500
CHANGES: Final = range(2, 27, 2)
CALLS: Final = (50, 100, 250, 500)
_DECIMALS: Final = 4
_BIN_SHIFT: Final = np.uint64(56)
Places = npt.NDArray[np.int64]


def letters_of_feed(feed: Path, count: int) -> list[str]:
    """Return the letters of the first texts that are long enough, cut to the longest that counts."""
    bodies = [line.body for line in read_lines(feed, Text)]
    forms = forms_of(bodies, KEYED, lexicon()).shingled
    return [letters[:LETTERS_MAX] for letters in forms if len(letters) >= LETTERS_MIN][:count]


def changed(letters: str, places: Sequence[int], seed: int) -> str:
    """Return the text with other letters, taken from itself, at these places."""
    rng = random.Random(seed)
    written = list(letters)
    for place in places:
        written[place] = rng.choice([letter for letter in sorted(set(letters)) if letter != letters[place]])
    return "".join(written)


def evenly(letters: str, count: int) -> list[int]:
    """Return this many places that are equally far apart."""
    return [round((place + 0.5) * len(letters) / count) for place in range(count)]


def greedily(letters: str, count: int) -> list[int]:
    """Return the places that take the most minima away by the published key, one after the other."""
    covering = _minima_at(letters)
    alive = np.ones(covering.shape[1], dtype=np.bool_)
    places = []
    for _ in range(count):
        gains = covering[:, alive].sum(axis=1)
        places.append(int(gains.argmax()))
        alive &= ~covering[places[-1]]
    return places


def _minima_at(letters: str) -> npt.NDArray[np.bool_]:
    """Return for each letter and bin of the sketch whether the bin's minimum is of a shingle with that letter."""
    shingling = KEYED.definition.shingling(PUBLISHED_SECRET)
    (chunk,) = hashed_chunks([letters], None, shingling)
    least: dict[int, tuple[int, int]] = {}
    for place, value in zip(chunk.positions.tolist(), chunk.hashes.tolist(), strict=True):
        number = value >> int(_BIN_SHIFT)
        least[number] = min(least.get(number, (value, place)), (value, place))
    covering = np.zeros((len(letters), len(least)), dtype=np.bool_)
    for column, (_, place) in enumerate(least.values()):
        length = shingling.cjk if chunk.characters.is_cjk[place] else shingling.other
        covering[place : place + length, column] = True
    return covering


def hidden(texts: Sequence[str], copies: Sequence[str], secret: Secret) -> list[bool]:
    """Return for each text whether its copy is not flagged as one."""
    verdicts = judged([*texts, *copies], secret)
    return [verdict.duplicate_of != str(place) for place, verdict in enumerate(verdicts[len(texts) :])]


def attack(texts: Sequence[str], count: int, secrets: Sequence[Secret]) -> Row:
    """Return the shares of texts that changing this many letters hides, means over the secrets."""
    spaced, chosen = ([changed(text, choose(text, count), count) for text in texts] for choose in (evenly, greedily))
    return {
        "letters changed": count,
        "evenly": f"{np.mean([hidden(texts, spaced, secret) for secret in secrets]):.3f}",
        "published": f"{np.mean([hidden(texts, chosen, secret) for secret in secrets]):.3f}",
        "known": f"{np.mean(hidden(texts, chosen, PUBLISHED_SECRET)):.3f}",
    }


def answers(text: str, copies: Sequence[str], secret: Secret) -> npt.NDArray[np.float64]:
    """Return what ``check`` says of copies: their similarity to the text, rounded."""
    sketches = np.array(
        [np.frombuffer(version.record.sketch, np.uint8) for version in versions_of([text, *copies], secret)]
    )
    return np.round(default_settings().scheme.definition.sketch_similarity(sketches[0], sketches[1:]), _DECIMALS)


def climbed(text: str, calls: int, secret: Secret) -> list[int]:
    """Return places in the order in which an attacker would change them after this many calls of ``check``."""
    tried = [int(place) for place in np.linspace(0, len(text) - 1, min(calls, len(text)))]
    similar = answers(text, [changed(text, [place], place) for place in tried], secret)
    order = [tried[number] for number in np.argsort(similar, kind="stable")]
    reach = KEYED.definition.shingling(secret).other
    apart: list[int] = []
    for place in order:
        # The shingles of letters that are close together are the same ones.
        if all(abs(place - other) >= reach for other in apart):
            apart.append(place)
    return apart


def letters_needed(text: str, places: Sequence[int], secret: Secret) -> int:
    """Return how many of the places have to be changed until the copy is less similar than the threshold."""
    copies = [changed(text, places[:count], count) for count in range(1, len(places) + 1)]
    below = np.flatnonzero(answers(text, copies, secret) < default_settings().similarity_min)
    return int(below[0]) + 1 if len(below) else len(places) + 1


def calls_needed(texts: Sequence[str], seed: int) -> list[Row]:
    """Return for each number of calls how many letters of a text hide it."""
    cut = [text[:CALLED_LETTERS] for text in texts if len(text) >= CALLED_LETTERS]
    secret, rng = some_secret(seed), random.Random(seed)
    rows: list[Row] = []
    for calls in (0, *CALLS):
        tell(f"{calls} calls …")
        needed = []
        for text in cut:
            places = climbed(text, calls, secret) if calls else []
            spaced = evenly(text, CALLED_LETTERS // KEYED.definition.shingling(secret).other)
            rest = [place for place in rng.sample(spaced, len(spaced)) if place not in places]
            needed.append(letters_needed(text, [*places, *rest], secret))
        rows.append(
            {"calls": calls, "texts": len(cut), "letters, median": float(np.median(needed)), "most": max(needed)}
        )
    return rows


def main(
    feed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines.")],
    texts: Annotated[int, typer.Option(min=1, help="How many texts.")] = 200,
    secrets: Annotated[int, typer.Option(min=1, help="How many secrets; --calls takes one.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    *,
    calls: Annotated[bool, typer.Option("--calls", help="Measure what answers of check give away.")] = False,
) -> None:
    """Change letters of copies until they are not flagged."""
    found = letters_of_feed(feed, texts)
    if calls:
        publish(PART, "Letters to change, by calls of check", calls_needed(found, 0), out=out, feed=feed.name)
        return
    rows: list[Row] = []
    drawn = [some_secret(seed) for seed in range(secrets)]
    for count in CHANGES:
        tell(f"{count} letters …")
        rows.append(attack(found, count, drawn))
    publish(PART, f"Share of {len(found)} texts hidden", rows, out=out, feed=feed.name)


if __name__ == "__main__":
    typer.run(main)
