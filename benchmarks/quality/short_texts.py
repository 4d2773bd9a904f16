"""Flags among different short texts of feeds: ``python -m benchmarks.quality.short_texts FEED… --show 50``.

A text is short with at most 30 characters. Texts are different if they are, normalised by NFKC and casefold, with
white space as one space. All are judged as one feed with scheme 3, so each pair of them is one that may be flagged. A
flag *by equality* joins two that the table in docs/use/fingerprint.md folds to one; all others are *by similarity*.
"""

import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from benchmarks.quality.feed import read_lines
from benchmarks.quality.judging import judged, some_secret, versions_of
from benchmarks.speed.report import OUT, publish, tell

PART: Final = "short-texts"
CHARACTERS_MAX: Final = 30


class Text(msgspec.Struct, frozen=True):
    """What is read of a line of a feed."""

    body: str


def different(texts: Iterable[str]) -> list[str]:
    """Return the short ones of texts, one of each."""
    by_form = {" ".join(unicodedata.normalize("NFKC", text).casefold().split()): text for text in texts}
    return [text for form, text in by_form.items() if 0 < len(form) <= CHARACTERS_MAX]


def main(
    feeds: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines.")],
    seed: Annotated[int, typer.Option(help="Of the secret.")] = 1,
    show: Annotated[int, typer.Option(min=0, help="How many flags of each kind to print.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Count flags among different short texts."""
    texts = different(line.body for feed in feeds for line in read_lines(feed, Text))
    secret = some_secret(seed)
    digests = [version.record.text_digest for version in versions_of(texts, secret)]
    flags: dict[str, list[str]] = {"equality": [], "similarity": []}
    for place, verdict in enumerate(judged(texts, secret)):
        if verdict.duplicate_of is not None:
            named = int(verdict.duplicate_of)
            kind = "equality" if digests[place] == digests[named] else "similarity"
            flags[kind].append(f"{texts[named]!r} {texts[place]!r}")
    for kind, found in flags.items():
        for flag in found[:show]:
            tell(f"by {kind}: {flag}")
    row = {
        "texts": len(texts),
        "pairs": len(texts) * (len(texts) - 1) // 2,
        "flags by equality": len(flags["equality"]),
        "flags by similarity": len(flags["similarity"]),
    }
    publish(PART, "Different short texts", [row], out=out, feeds=[feed.name for feed in feeds])


if __name__ == "__main__":
    typer.run(main)
