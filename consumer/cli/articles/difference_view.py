"""Shows the differences between two texts, and the passages that two articles share."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from consumer.cli.render import abridge, console, plain
from consumer.store_tools.explanation import SharedPart
from consumer.text.counts import counted
from consumer.text.diff import Stretch

EQUAL_CHARS_SHOWN_MAX: Final = 80
CHANGED_CHARS_SHOWN_MAX: Final = 400
"""The maximum number of characters shown of each text in a change. The view says how many were omitted."""
CHANGES_SHOWN_MAX: Final = 200
PASSAGE_CHARS_SHOWN_MAX: Final = 300
PASSAGES_SHOWN_MAX: Final = 5


def merged_text(stretches: Sequence[Stretch]) -> Text:
    """Return texts A and B merged and abridged, up to ``CHANGES_SHOWN_MAX`` changes.

    Text only in A is red, text only in B green, and moved text yellow.
    """
    text = Text()
    changes = 0
    for stretch in stretches:
        if stretch.kind == "equal":
            text.append(abridge(stretch.a, EQUAL_CHARS_SHOWN_MAX))
            continue
        changes += 1
        if changes > CHANGES_SHOWN_MAX:
            break
        if stretch.kind == "moved":
            text.append(_mark(stretch.a, "[~", "~]") + _mark(stretch.b, "{~", "~}"), "yellow")
            continue
        text.append(_mark(stretch.a, "[-", "-]"), "red strike")
        text.append(_mark(stretch.b, "{+", "+}"), "green")
    return text


def comparison_notes(stretches: Sequence[Stretch]) -> Iterator[str]:
    """Yield notes on the comparison, such as changes that are not shown or text that was not compared."""
    kinds = Counter(stretch.kind for stretch in stretches)
    changes = kinds.total() - kinds["equal"]
    if not changes:
        yield "The texts are identical."
    if changes > CHANGES_SHOWN_MAX:
        yield f"Showing the first {CHANGES_SHOWN_MAX} of {changes:,} changes; use --json for all."
    if kinds["moved"]:
        yield "Text between [~ and ~] in A is between {~ and ~} in B, word for word: it has moved."
    skipped = [stretch for stretch in stretches if stretch.kind == "not compared"]
    if skipped:
        a, b = sum(len(stretch.a) for stretch in skipped), sum(len(stretch.b) for stretch in skipped)
        yield (
            f"Not compared: {counted(a, 'character')} of A with {b:,} of B, in {counted(len(skipped), 'place')} where "
            "the texts differ too much. They are shown as changed but may have text in common."
        )


def _mark(text: str, before: str, after: str) -> str:
    if not text:
        return ""
    omitted = len(text) - CHANGED_CHARS_SHOWN_MAX
    if omitted <= 0:
        return f"{before}{plain(text)}{after}"
    half = CHANGED_CHARS_SHOWN_MAX // 2
    return f"{before}{plain(text[:half])} … {counted(omitted, 'more character')} … {plain(text[-half:])}{after}"


def print_passages(shared: SharedPart) -> None:
    """Print the first passages of a text that are also in another article, and how many more there are."""
    if shared.passages is None:
        console().print(f"\nThe passages shared with {plain(shared.part.id)} are not known: texts are not stored.")
        return
    console().print(Text(f"\nalso in {plain(shared.part.id)}", "bold"))
    for passage in shared.passages[:PASSAGES_SHOWN_MAX]:
        console().print(
            Text.assemble(
                (f"{len(passage.text):,} characters from {passage.at:,} on: ", "dim"),
                abridge(passage.text.strip(), PASSAGE_CHARS_SHOWN_MAX),
            )
        )
    more = len(shared.passages) - PASSAGES_SHOWN_MAX
    if more > 0:
        console().print(f"and {counted(more, 'more passage')}")
    if not shared.passages:
        console().print("No passage is identical word for word.")


def passages_json(shared: SharedPart) -> dict[str, object]:
    """Return the id and version of the other article, and the passages shared with it, for JSON.

    A passage has its start and length in characters. The passages are None if they are not known.
    """
    found = shared.passages
    places = None if found is None else [{"at": passage.at, "chars": len(passage.text)} for passage in found]
    return {"id": shared.part.id, "version": shared.part.version, "passages": places}
