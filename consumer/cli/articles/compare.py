"""``dupwatch compare``: the distance and the similarity of two texts, by every measure."""

from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import RenderableType
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SchemeOption, SetOption, command_config
from consumer.cli.results import answer
from consumer.cli.texts import NamedText, check_one_stream, read_text
from consumer.fingerprint import (
    PUBLISHED_SECRET,
    Fingerprinter,
    Scheme,
    TextKind,
    cosine,
    fingerprint_number,
    hamming_distance,
)
from consumer.model.errors import ConfigError
from consumer.wiring.components import lexicon_of, scheme_of
from consumer.wiring.stores import configured_secret, opened_store, stored_binding

BITS_IN_A_LINE: Final = 64
_GROUP_BITS: Final = 16


class _ComparedText(NamedTuple):
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
    a: Annotated[str, typer.Argument(metavar="A", help="An article as JSON, or plain text; - for standard input.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Same as A.")],
    scheme: SchemeOption = None,
    store: LastingStoreOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compare two texts: Hamming distance, verified similarity, cosine of keywords, fingerprints bit by bit."""
    check_one_stream([a, b])
    if scheme is not None and store is not None:
        raise ConfigError(
            "--scheme and --store cannot be used together, because a store has its own scheme; use one of them"
        )
    chosen = command_config(config, overrides, fingerprint__scheme=scheme, store__url=store)
    lexicon = lexicon_of(chosen)
    if store is None:
        chosen_scheme, secret = scheme_of(chosen), configured_secret(chosen) or PUBLISHED_SECRET
    else:
        with opened_store(chosen, readonly=True) as opened:
            bound = stored_binding(opened, lexicon)
        chosen_scheme, secret = bound.settings.scheme, bound.secret
    fingerprinter = Fingerprinter(chosen_scheme, lexicon, keywords_kept=None, secret=secret)
    compared = _compare_texts(read_text(a, chosen), read_text(b, chosen), fingerprinter)
    answer(json=json, lines=[_json_fields(*compared, chosen_scheme)], text=_text(*compared, chosen_scheme))
    if chosen_scheme.definition.compares_letters and secret == PUBLISHED_SECRET:
        render.console(stderr=True).print(
            "The similarity is estimated with the published secret; --store STORE uses the secret of that store."
        )


def _compare_texts(
    a: NamedText, b: NamedText, fingerprinter: Fingerprinter
) -> tuple[_ComparedText, _ComparedText, _Measures]:
    definition = fingerprinter.scheme.definition
    batch = fingerprinter.fingerprint([a.text, b.text], [a.language, b.language])
    text_a, text_b = (
        _ComparedText(text.name, TextKind(int(batch.kinds[number])), fingerprint_number(batch.codes[number]))
        for number, text in enumerate((a, b))
    )
    weights_a, weights_b = (dict(keywords) for keywords in batch.keywords)
    equal_text = batch.text_digests[0].tobytes() == batch.text_digests[1].tobytes()
    similarity = float(definition.sketch_similarity(batch.sketches[0], batch.sketches[1]))
    measures = _Measures(
        distance=hamming_distance(text_a.fingerprint, text_b.fingerprint),
        similarity=1.0 if equal_text and definition.compares_letters else similarity,
        cosine=cosine(weights_a, weights_b),
        equal_text=equal_text,
        shared=tuple(word for word in weights_a if word in weights_b),
    )
    return text_a, text_b, measures


def _json_fields(a: _ComparedText, b: _ComparedText, measures: _Measures, scheme: Scheme) -> dict[str, object]:
    differing = a.fingerprint ^ b.fingerprint
    return {
        "scheme": scheme.name,
        "bits": scheme.bits,
        "distance": measures.distance,
        "similarity": measures.similarity,
        "cosine": measures.cosine,
        "equal_text": measures.equal_text,
        "differing_bits": [place for place in range(scheme.bits) if differing >> scheme.bits - 1 - place & 1],
        "shared_keywords": measures.shared,
        **{
            name: {
                "name": compared.name,
                "kind": compared.kind.name.lower(),
                "fingerprint": f"{compared.fingerprint:0{scheme.bits // 4}x}",
            }
            for name, compared in (("a", a), ("b", b))
        },
    }


def _text(a: _ComparedText, b: _ComparedText, measures: _Measures, scheme: Scheme) -> Iterator[RenderableType]:
    for name, compared in (("A", a), ("B", b)):
        yield Text.assemble((f"{name}  ", "bold"), render.plain(compared.name), f"  {compared.kind.name.lower()}")
    yield ""
    yield from _bit_lines(a.fingerprint, b.fingerprint, scheme.bits)
    rows = {
        "scheme": scheme.name,
        "Hamming distance": f"{measures.distance} of {scheme.bits} bits",
        "verified similarity": f"{measures.similarity:.3f}",
        "cosine of the keyword vectors": f"{measures.cosine:.3f}",
        "text": "equal" if measures.equal_text else "different",
    }
    yield render.value_table("Measures", rows.items())
    if TextKind.EMPTY in {a.kind, b.kind}:
        yield "An empty text, or one without keywords, is never part of a duplicate pair."
    elif not {a.kind, b.kind} <= {TextKind.LONG, TextKind.SHINGLED}:
        yield "At least one text is short: the two are duplicates only if they are equal (docs/use/fingerprint.md)."
    yield render.keywords_line(measures.shared)


def _bit_lines(a: int, b: int, bits: int) -> Iterator[Text]:
    """Yield both fingerprints in lines of 64 bits, with marks below the bits that differ."""
    digits = [f"{code:0{bits}b}" for code in (a, b)]
    for first in range(0, bits, BITS_IN_A_LINE):
        lines = [Text("A  ", "bold"), Text("B  ", "bold"), Text("   ")]
        for place in range(first, first + BITS_IN_A_LINE):
            differs = digits[0][place] != digits[1][place]
            marks = (digits[0][place], digits[1][place], "^" if differs else " ")
            for line, mark in zip(lines, marks, strict=True):
                line.append(mark, "bold red" if differs else "")
                if (place + 1) % _GROUP_BITS == 0:
                    line.append(" ")
        for line in lines:
            line.rstrip()
            yield line
