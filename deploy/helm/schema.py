"""Write ``values.schema.json`` of the chart: ``python -m deploy.helm.schema``.

Names, types and descriptions come from ``values.yaml``: each value has a comment above it. The schema of ``config``
comes from the settings of dupwatch. Helm refuses values that do not fit, and values that the schema does not name. Run
it after a change of either; a test fails if that was forgotten.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

try:
    import yaml

    from consumer.config.config import Config
    from consumer.config.descriptions import SOURCE_PLACEHOLDER, all_settings, section_description
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    sys.exit(f"This needs {error.name} from the test environment; create that with: make .venv/test.stamp")

from deploy.helm.comparison import CHART

VALUES: Final = CHART / "values.yaml"
SCHEMA: Final = CHART / "values.schema.json"
Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_NAMES: Final[Schema] = {"type": "array", "items": {"type": "string", "minLength": 1}}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_MAP: Final[Schema] = {"type": "object"}
_MAPS: Final[Schema] = {"type": "array", "items": _MAP}
_PORT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 65535}
_AMOUNTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_POD: Final[Schema] = {"allOf": [{"$ref": "#/definitions/pod"}]}
_RESOURCES: Final[Schema] = {
    "type": "object",
    "properties": {"requests": _AMOUNTS, "limits": _AMOUNTS, "claims": _MAPS},
    "additionalProperties": False,
}
_KINDS: Final[Mapping[str, Schema]] = {
    **dict.fromkeys(("labels", "annotations", "nodeSelector", "podLabels", "trigger"), _TEXTS),
    **dict.fromkeys(("args", "hosts", "imagePullSecrets"), _NAMES),
    **dict.fromkeys(("env", "volumes", "volumeMounts", "sidecars", "tolerations", "to", "from"), _MAPS),
    **dict.fromkeys(("affinity", "behavior"), _MAP),
    **dict.fromkeys(("resources", "scriptResources"), _RESOURCES),
    "hbaseSite": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    "authentication": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"parameter": _TEXT, "key": _TEXT},
            "required": ["parameter", "key"],
            "additionalProperties": False,
        },
    },
    "fullnameOverride": {"type": "string", "pattern": "^([a-z]([-a-z0-9]*[a-z0-9])?)?$"},
    "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    "maxUnavailable": {"type": ["integer", "string"], "pattern": "^[0-9]+%$", "minimum": 0},
    "port": _PORT,
    "pod": _POD,
    # Without ports, a policy would open all of them.
    "ports": {"type": "array", "items": _PORT, "minItems": 1},
}
"""The schemas of values that YAML does not tell, by the last part of their names."""
OPAQUE: Final = frozenset(_KINDS)
"""Values whose content is not ours to name."""
_BY_TYPE: Final[Mapping[str, Schema]] = {
    "tag:yaml.org,2002:str": _TEXT,
    "tag:yaml.org,2002:bool": {"type": "boolean"},
    "tag:yaml.org,2002:int": {"type": "integer", "minimum": 0},
}
_DROPPED: Final = frozenset({"title", "default", "$defs"})


class Undescribed(Exception):  # noqa: N818  # a sentence for a person
    """A value lacks a comment, or its type is not known."""


def schema(values: str) -> Schema:
    """Return the schema of the values in this text. Raises ``Undescribed``."""
    lines = values.splitlines()
    document = yaml.compose(values, Loader=yaml.SafeLoader)
    assert isinstance(document, yaml.MappingNode)  # noqa: S101  # ours
    properties = _properties(document, lines, "")
    # Parts override single values of pods, so that none of them is required there.
    pod = {key: properties["pods"].pop(key) for key in ("type", "properties", "additionalProperties")}
    properties["pods"] |= _POD
    properties["config"] |= settings()
    # Helm adds it for charts that are parts of others.
    properties["global"] = {"type": "object", "description": "Values of a chart that this one is a part of. Not used."}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart dupwatch",
        "type": "object",
        "properties": properties,
        "required": sorted(properties.keys() - {"global"}),
        "additionalProperties": False,
        "definitions": {"pod": pod},
    }


def settings() -> Schema:
    """Return the schema of the settings of dupwatch, each with its description."""
    whole = Config.model_json_schema()
    inlined = _inlined(whole, whole["$defs"])
    for setting in all_settings():
        _at(inlined, setting.name)["description"] = setting.description
        for section in _sections(setting.name):
            _at(inlined, section).setdefault("description", section_description(section))
    return {"type": "object", "properties": inlined["properties"], "additionalProperties": False}


def text(content: Schema) -> str:
    """Return a schema as the text of a file."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _properties(node: yaml.MappingNode, lines: Sequence[str], prefix: str) -> Schema:
    return {key.value: _value(f"{prefix}{key.value}", key, value, lines) for key, value in node.value}


def _value(name: str, key: yaml.Node, value: yaml.Node, lines: Sequence[str]) -> Schema:
    described: Schema = {"description": _comment(name, key, lines)}
    last = name.rpartition(".")[2]
    if last in _KINDS:
        return described | _KINDS[last]
    if isinstance(value, yaml.MappingNode) and (value.value or name == "config"):
        inner = _properties(value, lines, f"{name}.")
        # Where somebody sets a map to null, Helm removes it.
        return described | {
            "type": "object",
            "properties": inner,
            "required": sorted(inner),
            "additionalProperties": False,
        }
    if value.tag not in _BY_TYPE:
        raise Undescribed(f"{name} is empty; say in deploy.helm.schema what it may have")
    return described | _BY_TYPE[value.tag]


def _comment(name: str, key: yaml.Node, lines: Sequence[str]) -> str:
    """Return the comment directly above a key, as one line."""
    start = f"{' ' * key.start_mark.column}# "
    above: list[str] = []
    for line in reversed(lines[: key.start_mark.line]):
        if not line.startswith(start):
            break
        above.insert(0, line.removeprefix(start))
    if not above:
        raise Undescribed(f"{name} has no comment above it")
    return " ".join(above)


def _inlined(value: Any, definitions: Schema) -> Any:  # noqa: ANN401  # what JSON has
    """Return a schema with the definitions in place of the references to them, without defaults."""
    if isinstance(value, list):
        return [_inlined(inner, definitions) for inner in value]
    if not isinstance(value, Mapping):
        return value
    if "$ref" in value:
        return _inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {
        key: {name: _inlined(inner, definitions) for name, inner in content.items()}
        if key == "properties"
        else _inlined(content, definitions)
        for key, content in value.items()
        if key not in _DROPPED
    }


def _sections(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[:length]) for length in range(1, len(parts)))


def _at(whole: Schema, name: str) -> Schema:
    """Return the schema of a setting or a section."""
    for part in name.split("."):
        whole = whole["additionalProperties"] if part == SOURCE_PLACEHOLDER else whole["properties"][part]
    return whole


def main() -> int:
    """Write the schema and return the exit code."""
    try:
        SCHEMA.write_text(text(schema(VALUES.read_text())))
    except Undescribed as error:
        sys.stderr.write(f"{VALUES}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
