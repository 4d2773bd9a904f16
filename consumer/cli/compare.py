"""``dupwatch compare``: how far apart two texts are, by every measure there is."""

from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import typer
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SchemeOption, SetOption, configured
from consumer.cli.results import results, write_json
from consumer.cli.texts import NamedText, check_one_stream, read_text
from consumer.fingerprint import (
    Fingerprinter,
    Lexicon,
    Scheme,
    TextKind,
    cosine,
    fingerprint_number,
    hamming_distance,
    sketch_similarity,
)
from consumer.wiring.parts import lexicon_of, scheme_of

BITS_IN_A_LINE: Final = 64
_GROUP_BITS: Final = 16


class _Side(NamedTuple):
    name: str
    kind: TextKind
    fingerprint: int


class _Measures(NamedTuple):
    distance: int
    similarity: float
    cosine: float
    equal_text: bool
    shared: tuple[str, ...]


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="An article as JSON, or plain text; - is standard input.")],
    b: Annotated[str, typer.Argument(metavar="B", help="As A.")],
    scheme: SchemeOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Compare two texts: Hamming distance, verified similarity, cosine of keywords, fingerprints bit by bit."""
    check_one_stream([a, b])
    chosen = configured(config, settings, fingerprint__scheme=scheme)
    by = scheme_of(chosen)
    one, other, measures = _measured(read_text(a, chosen), read_text(b, chosen), by, lexicon_of(chosen))
    with results():
        if json:
            write_json(_plain(one, other, measures, by))
        else:
            _print(one, other, measures, by)


def _measured(a: NamedText, b: NamedText, by: Scheme, lexicon: Lexicon) -> tuple[_Side, _Side, _Measures]:
    fingerprinter = Fingerprinter(by, lexicon, keywords_kept=None)
    made = fingerprinter.fingerprint([a.text, b.text], [a.language, b.language])
    one, other = (
        _Side(text.name, TextKind(int(made.kinds[number])), fingerprint_number(made.codes[number]))
        for number, text in enumerate((a, b))
    )
    weights, other_weights = (dict(keywords) for keywords in made.keywords)
    measures = _Measures(
        distance=hamming_distance(one.fingerprint, other.fingerprint),
        similarity=float(sketch_similarity(made.sketches[0], made.sketches[1])),
        cosine=cosine(weights, other_weights),
        equal_text=made.text_digests[0].tobytes() == made.text_digests[1].tobytes(),
        shared=tuple(word for word in weights if word in other_weights),
    )
    return one, other, measures


def _plain(one: _Side, other: _Side, measures: _Measures, by: Scheme) -> dict[str, object]:
    differing = one.fingerprint ^ other.fingerprint
    return {
        "scheme": by.name,
        "bits": by.bits,
        "distance": measures.distance,
        "similarity": measures.similarity,
        "cosine": measures.cosine,
        "equal_text": measures.equal_text,
        "differing_bits": [place for place in range(by.bits) if differing >> by.bits - 1 - place & 1],
        "shared_keywords": measures.shared,
        **{
            name: {
                "name": side.name,
                "kind": side.kind.name.lower(),
                "fingerprint": f"{side.fingerprint:0{by.bits // 4}x}",
            }
            for name, side in (("a", one), ("b", other))
        },
    }


def _print(one: _Side, other: _Side, measures: _Measures, by: Scheme) -> None:
    console = render.console()
    for name, side in (("A", one), ("B", other)):
        console.print(Text.assemble((f"{name}  ", "bold"), render.plain(side.name), f"  {side.kind.name.lower()}"))
    console.print()
    for line in _bit_lines(one.fingerprint, other.fingerprint, by.bits):
        console.print(line)
    table = render.pairs("Measures")
    table.add_row("scheme", by.name)
    table.add_row("Hamming distance", f"{measures.distance} of {by.bits} bits")
    table.add_row("verified similarity", f"{measures.similarity:.3f}")
    table.add_row("cosine of the keyword vectors", f"{measures.cosine:.3f}")
    table.add_row("normalised text", "equal" if measures.equal_text else "not equal")
    console.print(table)
    if TextKind.EMPTY in {one.kind, other.kind}:
        console.print("A text without keywords is a duplicate of nothing, and nothing is one of it.")
    elif TextKind.LONG not in {one.kind, other.kind} or one.kind != other.kind:
        console.print("Not both are long: only equal normalised texts count as duplicates here.")
    console.print(render.keywords_line(measures.shared[:20]))


def _bit_lines(a: int, b: int, bits: int) -> Iterator[Text]:
    """Both fingerprints in lines of 64 bits; below each, what differs."""
    written = [f"{code:0{bits}b}" for code in (a, b)]
    for first in range(0, bits, BITS_IN_A_LINE):
        lines = [Text("A  ", "bold"), Text("B  ", "bold"), Text("   ")]
        for place in range(first, first + BITS_IN_A_LINE):
            differs = written[0][place] != written[1][place]
            marks = (written[0][place], written[1][place], "^" if differs else " ")
            for line, mark in zip(lines, marks, strict=True):
                line.append(mark, "bold red" if differs else "")
                if (place + 1) % _GROUP_BITS == 0:
                    line.append(" ")
        for line in lines:
            line.rstrip()
            yield line
