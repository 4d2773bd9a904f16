"""The difference of two texts, for reading."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from consumer.cli.render import abridged, plain
from consumer.text.diff import Stretch

EQUAL_CHARS_SHOWN_MAX: Final = 80
CHANGED_CHARS_SHOWN_MAX: Final = 400
"""Characters of one side of a change; the number of characters left out is shown."""
CHANGES_SHOWN_MAX: Final = 200


def shown(stretches: Sequence[Stretch]) -> Text:
    """Return both texts in one: text of A only is red, of B only green; long stretches are abridged."""
    text = Text()
    changes = 0
    for stretch in stretches:
        if stretch.kind == "equal":
            text.append(abridged(stretch.a, EQUAL_CHARS_SHOWN_MAX))
            continue
        changes += 1
        if changes > CHANGES_SHOWN_MAX:
            break
        text.append(_marked(stretch.a, "[-", "-]"), "red strike")
        text.append(_marked(stretch.b, "{+", "+}"), "green")
    return text


def notes(stretches: Sequence[Stretch]) -> Iterator[str]:
    """Yield notes on what the difference leaves out, and on what was not compared."""
    kinds = Counter(stretch.kind for stretch in stretches)
    changes = kinds["changed"] + kinds["not compared"]
    if not changes:
        yield "The texts are identical."
    if changes > CHANGES_SHOWN_MAX:
        yield f"Showing the first {CHANGES_SHOWN_MAX} of {changes:,} changes; use --json for all."
    skipped = [stretch for stretch in stretches if stretch.kind == "not compared"]
    if skipped:
        a, b = sum(len(stretch.a) for stretch in skipped), sum(len(stretch.b) for stretch in skipped)
        places = "1 place" if len(skipped) == 1 else f"{len(skipped)} places"
        yield (
            f"Not compared: {a:,} characters of A with {b:,} of B, in {places} where the texts differ too much. They "
            "are shown as changed but may have text in common."
        )


def _marked(text: str, before: str, after: str) -> str:
    if not text:
        return ""
    left_out = len(text) - CHANGED_CHARS_SHOWN_MAX
    if left_out <= 0:
        return f"{before}{plain(text)}{after}"
    half = CHANGED_CHARS_SHOWN_MAX // 2
    return f"{before}{plain(text[:half])} … {left_out:,} more characters … {plain(text[-half:])}{after}"
