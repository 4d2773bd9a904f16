"""Lists the members of an event as Markdown, from the descriptions in its JSON Schema."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

SCHEMAS: Final = Path(__file__).parents[3] / "docs" / "schemas"
_VALUES_MAX: Final = 10
"""A longer list of values appears as a type; the description of the member explains the values."""


def members_of(name: str) -> str:
    """Return a list item for each member of the schema ``name`` that has a description, including nested members."""
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_bytes())
    return "".join(_items(schema, schema.get("$defs", {}), ""))


def _items(schema: Schema, definitions: Schema, indent: str) -> Iterator[str]:
    branches = [schema] if "properties" in schema else schema.get("oneOf", ())
    members = {member: content for branch in branches for member, content in branch["properties"].items()}
    for member, content in members.items():
        if "description" not in content:
            continue
        optional = "" if all(member in branch.get("required", ()) for branch in branches) else ", optional"
        kinds = list(dict.fromkeys(kind for branch in branches for kind in _kinds(branch, member, definitions)))
        kind = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)
        yield f"{indent}- `{member}` ({kind}{optional}): {content['description']}\n"
        inner = content.get("items", content)
        if "properties" in inner:
            yield from _items(inner, definitions, indent + "  ")


def _kinds(branch: Schema, member: str, definitions: Schema) -> Iterator[str]:
    if member in branch["properties"]:
        yield from _kinds_of(branch["properties"][member], definitions)


def _kinds_of(content: Schema, definitions: Schema) -> Iterator[str]:
    """Yield the JSON types of a value, or the values themselves if a schema lists only a few."""
    if "$ref" in content:
        yield from _kinds_of(definitions[content["$ref"].rpartition("/")[2]], definitions)
    elif "const" in content or len(content.get("enum", range(_VALUES_MAX + 1))) <= _VALUES_MAX:
        for value in content.get("enum", [content.get("const")]):
            yield f"`{value if isinstance(value, str) else json.dumps(value)}`"
    elif alternatives := content.get("oneOf", content.get("anyOf")):
        found = [kind for each in alternatives for kind in _kinds_of(each, definitions)]
        yield from sorted(found, key="null".__eq__)
    else:
        named = content.get("type", "string" if "enum" in content else "number or string")
        yield from ("list" if kind == "array" else kind for kind in ([named] if isinstance(named, str) else named))
