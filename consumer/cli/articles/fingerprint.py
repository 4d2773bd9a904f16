"""``dupwatch fingerprint``: the fingerprint of a text, step by step."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SchemeOption, SetOption, command_config
from consumer.cli.results import answer
from consumer.cli.texts import read_text
from consumer.fingerprint import Breakdown, Fingerprinter, Scheme, TextKind, split_blocks
from consumer.wiring.components import lexicon_of, scheme_of

WORDS_SHOWN_MAX: Final = 40
BLOCK_BITS: Final = 16
SUMS_IN_A_LINE: Final = 8
_NOTES: Final = {
    TextKind.EMPTY: "This text has no keywords, or is empty: such an article matches nothing and is always kept.",
    TextKind.SHORT: "This text is short: only an equal text is its duplicate (docs/use/fingerprint.md).",
    TextKind.SHINGLED: "This text has few keywords: it is found, and compared, by its shingles.",
}


def fingerprint(
    source: Annotated[
        str, typer.Argument(metavar="FILE|-", help="An article as JSON, or plain text; - for standard input.")
    ] = "-",
    scheme: SchemeOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Show how the fingerprint of a text is computed: words, weights, bit sums, fingerprint, blocks."""
    chosen = command_config(config, overrides, fingerprint__scheme=scheme)
    chosen_scheme = scheme_of(chosen)
    text = read_text(source, chosen)
    lexicon = lexicon_of(chosen)
    steps = Fingerprinter(chosen_scheme, lexicon).breakdown(text.text)
    digest = chosen_scheme.digest(lexicon)
    answer(json=json, lines=[_json_fields(steps, chosen_scheme, digest)], text=_text(steps, chosen_scheme, digest))


def blocks_of(code: int, bits: int) -> list[str]:
    """Return the fingerprint as hexadecimal blocks of 16 bits, the most significant first."""
    return [f"{block:04x}" for block in split_blocks(code, bits, bits // BLOCK_BITS)]


def _json_fields(steps: Breakdown, scheme: Scheme, digest: str) -> dict[str, object]:
    width = scheme.bits // 4
    return {
        "scheme": scheme.name,
        "digest": digest,
        "kind": steps.kind.name.lower(),
        "words": [{"word": word.word, "weight": word.weight, "hash": f"{word.hash:0{width}x}"} for word in steps.words],
        "sums": steps.sums,
        "fingerprint": f"{steps.fingerprint:0{width}x}",
        "blocks": blocks_of(steps.fingerprint, scheme.bits),
    }


def _text(steps: Breakdown, scheme: Scheme, digest: str) -> Iterator[RenderableType]:
    yield _words(steps, scheme.bits // 4)
    if len(steps.words) > WORDS_SHOWN_MAX:
        yield f"... and {len(steps.words) - WORDS_SHOWN_MAX} more; use --json for all"
    yield Text("\nSum for each bit", "bold")
    yield from _sum_lines(steps, scheme.bits)
    yield ""
    rows: dict[str, str | Text] = {
        "scheme": scheme.name,
        "digest": digest,
        "kind": steps.kind.name.lower(),
        "fingerprint": Text(f"{steps.fingerprint:0{scheme.bits // 4}x}", "cyan"),
        "blocks": " ".join(blocks_of(steps.fingerprint, scheme.bits)),
    }
    yield render.value_table("Fingerprint", rows.items())
    if steps.kind in _NOTES:
        yield _NOTES[steps.kind]


def _words(steps: Breakdown, width: int) -> Table:
    columns = (
        Column("word", overflow="fold"),
        Column("weight", justify="right"),
        Column("hash", style="dim", overflow="fold"),
    )
    shown = steps.words[:WORDS_SHOWN_MAX]
    return render.table(
        columns, ((render.plain(word.word), f"{word.weight:.4f}", f"{word.hash:0{width}x}") for word in shown)
    )


def _sum_lines(steps: Breakdown, bits: int) -> Iterator[Text]:
    for first in range(0, bits, SUMS_IN_A_LINE):
        line = Text(f"{first:4}  ", "dim")
        for place in range(first, first + SUMS_IN_A_LINE):
            bit = steps.fingerprint >> bits - 1 - place & 1
            line.append(f"{steps.sums[place]:+11.3f}", "green" if bit else "red")
        yield line
