"""The passages that an article shares with another one, on a terminal and as JSON."""

from typing import Final

from rich.text import Text

from consumer.cli.render import abridged, console, plain
from consumer.store_tools.shared_passages import SharedWith

PASSAGE_CHARS_SHOWN_MAX: Final = 300
PASSAGES_SHOWN_MAX: Final = 5


def print_passages(shared: SharedWith) -> None:
    """Print the passages that also stand in one other article, in the order of the text."""
    if shared.passages is None:
        console().print(f"\nThe passages shared with {plain(shared.part.id)} are not known: texts are not stored.")
        return
    console().print(Text(f"\nalso in {plain(shared.part.id)}", "bold"))
    for passage in shared.passages[:PASSAGES_SHOWN_MAX]:
        console().print(
            Text.assemble(
                (f"{len(passage.text):,} characters from {passage.at:,} on: ", "dim"),
                abridged(passage.text.strip(), PASSAGE_CHARS_SHOWN_MAX),
            )
        )
    more = len(shared.passages) - PASSAGES_SHOWN_MAX
    if more > 0:
        console().print(f"and {more} more {'passage' if more == 1 else 'passages'}")
    if not shared.passages:
        console().print("No passage is the same word for word.")


def plain_passages(shared: SharedWith) -> dict[str, object]:
    """Return where each passage begins in the text, and how long it is, in characters; null where that is not known."""
    found = shared.passages
    places = None if found is None else [{"at": passage.at, "chars": len(passage.text)} for passage in found]
    return {"id": shared.part.id, "version": shared.part.version, "passages": places}
