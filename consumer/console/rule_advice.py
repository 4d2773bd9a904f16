"""Which rule of the configuration keeps pairs of two sources from being flagged."""

from typing import Literal, NamedTuple

from consumer.console.toml_text import quoted


class Advice(NamedTuple):
    """A rule for ``source``: for pairs within it, for its pairs with ``other``, or for all that it publishes."""

    concerns: Literal["within", "pair", "source"]
    source: str
    other: str
    toml: str


def advice(source: str | None, original_source: str | None) -> Advice | None:
    """Return the narrowest rule there is; None where the article names no source, or it is not known yet.

    There is one for a pair where both name a source.
    """
    if not source:
        return None
    section = f"[rules.{quoted(source)}]\n"
    if source == original_source:
        return Advice("within", source, source, f"{section}within_source = false\n")
    if original_source:
        return Advice("pair", source, original_source, f"{section}never_with = [{quoted(original_source)}]\n")
    return Advice("source", source, "", f'{section}flag = "never"\n')
