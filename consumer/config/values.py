"""Parses the values of settings in ``--set`` and in the environment, which have the same syntax."""

import json
import tomllib
from collections.abc import Iterator, Mapping


def parse_value(text: str) -> object:
    """Parse a value as TOML or as JSON: ``{"a.b" = 1}`` and ``{"a.b": 1}`` are the same map.

    Raises ``ValueError`` if it is neither, or is nested too deep.
    """
    try:
        return _parse(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _parse(text: str) -> object:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return json.loads(text)
    if parsed.keys() != {"value"}:
        raise ValueError("it has more than one value")
    return parsed["value"]


def with_dotted_names(value: object) -> dict[str, object]:
    """Return a flat map whose names contain dots, from nested maps: TOML reads ``a.b = 1`` as a map within a map.

    Raises ``ValueError`` for anything except a map.
    """
    if not isinstance(value, Mapping):
        raise ValueError('write a map, as TOML or JSON: {"fetch.min.bytes" = 1} or {"fetch.min.bytes": 1}')  # noqa: TRY004  # for pydantic
    return dict(_leaves("", value))


def _leaves(prefix: str, value: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _leaves(f"{prefix}{name}.", inner)
        else:
            yield f"{prefix}{name}", inner
