"""The difference of two texts as a person reads it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from consumer.cli.render import plain
from consumer.text.diff import Stretch

EQUAL_CHARS_SHOWN_MAX: Final = 80
CHANGED_CHARS_SHOWN_MAX: Final = 400
"""Of one side of a change; what is left out is counted."""
CHANGES_SHOWN_MAX: Final = 200


def shown(stretches: Sequence[Stretch]) -> Text:
    """Both texts in one: what only A has struck out in red, what only B has in green; long stretches abridged."""
    text = Text()
    changes = 0
    for stretch in stretches:
        if stretch.kind == "equal":
            text.append(_abridged(stretch.a))
            continue
        changes += 1
        if changes > CHANGES_SHOWN_MAX:
            break
        text.append(_marked(stretch.a, "[-", "-]"), "red strike")
        text.append(_marked(stretch.b, "{+", "+}"), "green")
    return text


def notes(stretches: Sequence[Stretch]) -> Iterator[str]:
    """What the difference does not show, and what was not compared."""
    kinds = Counter(stretch.kind for stretch in stretches)
    changes = kinds["changed"] + kinds["not compared"]
    if not changes:
        yield "The texts are equal, character by character."
    if changes > CHANGES_SHOWN_MAX:
        yield f"The first {CHANGES_SHOWN_MAX} of {changes:,} changes are shown; --json has them all."
    skipped = [stretch for stretch in stretches if stretch.kind == "not compared"]
    if skipped:
        a, b = sum(len(one.a) for one in skipped), sum(len(one.b) for one in skipped)
        places = "1 place" if len(skipped) == 1 else f"{len(skipped)} places"
        yield (
            f"Not compared: {a:,} characters of A with {b:,} of B, in {places} where the texts differ too "
            "much. They are marked as changed as a whole, and may have text in common."
        )


def plain_changes(stretches: Sequence[Stretch]) -> list[dict[str, object]]:
    """Every change whole, for programs: where it is and what either side has there."""
    return [
        {"at_a": one.at_a, "a": one.a, "at_b": one.at_b, "b": one.b, "compared": one.kind == "changed"}
        for one in stretches
        if one.kind != "equal"
    ]


def _marked(text: str, before: str, after: str) -> str:
    if not text:
        return ""
    left_out = len(text) - CHANGED_CHARS_SHOWN_MAX
    if left_out <= 0:
        return f"{before}{plain(text)}{after}"
    half = CHANGED_CHARS_SHOWN_MAX // 2
    return f"{before}{plain(text[:half])} … {left_out:,} more characters … {plain(text[-half:])}{after}"


def _abridged(text: str) -> str:
    """What is equal on both sides, without its middle where it is long."""
    half = EQUAL_CHARS_SHOWN_MAX // 2
    if len(text) <= EQUAL_CHARS_SHOWN_MAX:
        return plain(text.replace("\n", " "))
    return f"{plain(text[:half].replace(chr(10), ' '))} … {plain(text[-half:].replace(chr(10), ' '))}"
