"""``dupwatch fingerprint``: a text's fingerprint, step by step."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SchemeOption, SetOption, configured
from consumer.cli.results import results, write_json
from consumer.cli.texts import read_text
from consumer.fingerprint import Breakdown, Fingerprinter, Scheme, TextKind, split_blocks
from consumer.wiring.parts import lexicon_of, scheme_of

WORDS_SHOWN_MAX: Final = 40
BLOCK_BITS: Final = 16
SUMS_IN_A_LINE: Final = 8


def fingerprint(
    source: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="An article as JSON, or plain text; - is standard input.")
    ] = "-",
    scheme: SchemeOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Show how a text's fingerprint is made: words, weights, bit sums, fingerprint, blocks."""
    chosen = configured(config, settings, fingerprint__scheme=scheme)
    by = scheme_of(chosen)
    text = read_text(source, chosen)
    lexicon = lexicon_of(chosen)
    made = Fingerprinter(by, lexicon).breakdown(text.text)
    digest = by.digest(lexicon)
    with results():
        if json:
            write_json(_plain(made, by, digest))
        else:
            _print(made, by, digest)


def blocks_of(code: int, bits: int) -> list[str]:
    """The fingerprint in hexadecimal blocks of 16 bits, the most significant first."""
    return [f"{block:04x}" for block in split_blocks(code, bits, bits // BLOCK_BITS)]


def _plain(made: Breakdown, by: Scheme, digest: str) -> dict[str, object]:
    width = by.bits // 4
    return {
        "scheme": by.name,
        "digest": digest,
        "kind": made.kind.name.lower(),
        "words": [{"word": word.word, "weight": word.weight, "hash": f"{word.hash:0{width}x}"} for word in made.words],
        "sums": made.sums,
        "fingerprint": f"{made.fingerprint:0{width}x}",
        "blocks": blocks_of(made.fingerprint, by.bits),
    }


def _print(made: Breakdown, by: Scheme, digest: str) -> None:
    console = render.console()
    console.print(_words(made, by.bits // 4))
    if len(made.words) > WORDS_SHOWN_MAX:
        console.print(f"... and {len(made.words) - WORDS_SHOWN_MAX} more; --json has them all")
    console.print(Text("\nSums, bit by bit", "bold"))
    for line in _sum_lines(made, by.bits):
        console.print(line)
    console.print()
    told = render.pairs("Fingerprint")
    told.add_row("scheme", by.name)
    told.add_row("digest", digest)
    told.add_row("kind", made.kind.name.lower())
    told.add_row("fingerprint", Text(f"{made.fingerprint:0{by.bits // 4}x}", "cyan"))
    told.add_row("blocks", " ".join(blocks_of(made.fingerprint, by.bits)))
    console.print(told)
    if made.kind is TextKind.EMPTY:
        console.print("No keywords were found in this text: such an article matches nothing and is always kept.")


def _words(made: Breakdown, width: int) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("word", overflow="fold")
    table.add_column("weight", justify="right")
    table.add_column("hash", style="dim", overflow="fold")
    for word in made.words[:WORDS_SHOWN_MAX]:
        table.add_row(render.plain(word.word), f"{word.weight:.4f}", f"{word.hash:0{width}x}")
    return table


def _sum_lines(made: Breakdown, bits: int) -> Iterator[Text]:
    for first in range(0, bits, SUMS_IN_A_LINE):
        line = Text(f"{first:4}  ", "dim")
        for place in range(first, first + SUMS_IN_A_LINE):
            is_one = made.fingerprint >> bits - 1 - place & 1
            line.append(f"{made.sums[place]:+11.3f}", "green" if is_one else "red")
        yield line
