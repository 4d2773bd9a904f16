"""Check that every field is known to the cluster and has the right type."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]  # it ships no types
import yaml

from deploy.kubernetes.manifests import Document, name_of

VERSIONS: Final = ("1.29", "1.37")
"""The oldest Kubernetes version that the manifests support, and the newest one with published schemas."""

Schemas = Mapping[tuple[str, str], Mapping[str, Any]]
"""Schemas by apiVersion and kind."""


def read_schemas(folder: Path) -> Schemas:
    """Read the schemas of the operators' kinds from the definitions in a folder, and make them strict."""
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        definition = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)["spec"]
        for version in definition["versions"]:
            names = f"{definition['group']}/{version['name']}", definition["names"]["kind"]
            found[names] = strict_schema(version["schema"]["openAPIV3Schema"])
    return found


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same schema, but one that rejects fields that it does not name.

    The cluster drops such fields silently. Schemas below anyOf and similar keywords name only part of the fields
    (structural schemas of Kubernetes), so they are left unchanged.
    """
    closed = dict(schema)
    if "properties" in closed:
        closed["properties"] = {name: strict_schema(inner) for name, inner in closed["properties"].items()}
        if not closed.get("x-kubernetes-preserve-unknown-fields"):
            closed.setdefault("additionalProperties", False)
    for inner in ("items", "additionalProperties"):
        if isinstance(closed.get(inner), Mapping):
            closed[inner] = strict_schema(closed[inner])
    return closed


def schema_faults(documents: Sequence[Document], schemas: Schemas) -> Iterator[str]:
    """Yield the fields that the cluster would reject or drop."""
    for document in documents:
        schema = schemas.get((str(document.get("apiVersion")), str(document.get("kind"))))
        errors: Iterable[str] = _core_faults(document) if schema is None else _operator_faults(document, schema)
        # Both versions usually report the same errors.
        yield from dict.fromkeys(f"{name_of(document)}: {error}" for error in errors)


def _operator_faults(document: Document, schema: Mapping[str, Any]) -> Iterator[str]:
    for error in jsonschema.Draft202012Validator(schema).iter_errors(document):
        yield _sentence(error)
    # These schemas allow any metadata; the cluster does not.
    yield from _core_faults({"apiVersion": "v1", "kind": "ConfigMap", "metadata": document["metadata"]})


def _core_faults(document: Document) -> tuple[str, ...]:
    return _core_errors(json.dumps(document, sort_keys=True, default=str))


@cache
def _core_errors(text: str) -> tuple[str, ...]:
    """Return what the core schemas report for a document in JSON. Cached, since validation reads all schemas."""
    document = json.loads(text)
    errors = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            errors.append(_sentence(error))
        except (kubernetes_validate.SchemaNotFoundError, KeyError):
            errors.append(f"there is no {document.get('kind')} in {document.get('apiVersion')}")
    return tuple(errors)


def _sentence(error: jsonschema.ValidationError) -> str:
    return f"{'.'.join(str(part) for part in error.absolute_path) or 'the document'}: {error.message}"
