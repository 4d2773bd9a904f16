"""Whether every field is one that the cluster knows, and of the right type."""

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
"""The oldest Kubernetes that the manifests are for, and the newest whose schemas there are."""

Schemas = Mapping[tuple[str, str], Mapping[str, Any]]
"""By apiVersion and kind."""


def read_schemas(folder: Path) -> Schemas:
    """The schemas of the operators' kinds, from the definitions in a folder, made strict."""
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        definition = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)["spec"]
        for version in definition["versions"]:
            names = f"{definition['group']}/{version['name']}", definition["names"]["kind"]
            found[names] = strict(version["schema"]["openAPIV3Schema"])
    return found


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema, refusing fields that it does not name.

    The cluster drops such fields and says nothing. What stands under anyOf and its like names a part of the fields, as
    Kubernetes has it (structural schemas), so that is left as it is.
    """
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {name: strict(inner) for name, inner in made["properties"].items()}
        if not made.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
    for inner in ("items", "additionalProperties"):
        if isinstance(made.get(inner), Mapping):
            made[inner] = strict(made[inner])
    return made


def schema_faults(documents: Sequence[Document], schemas: Schemas) -> Iterator[str]:
    """What the cluster would refuse, or drop."""
    for document in documents:
        schema = schemas.get((str(document.get("apiVersion")), str(document.get("kind"))))
        said: Iterable[str] = _core_faults(document) if schema is None else _operator_faults(document, schema)
        # Versions mostly agree.
        yield from dict.fromkeys(f"{name_of(document)}: {one}" for one in said)


def _operator_faults(document: Document, schema: Mapping[str, Any]) -> Iterator[str]:
    for error in jsonschema.Draft202012Validator(schema).iter_errors(document):
        yield _sentence(error)
    # Their schemas leave metadata open, the cluster does not.
    yield from _core_faults({"apiVersion": "v1", "kind": "ConfigMap", "metadata": document["metadata"]})


def _core_faults(document: Document) -> tuple[str, ...]:
    return _told(json.dumps(document, sort_keys=True, default=str))


@cache
def _told(text: str) -> tuple[str, ...]:
    """What the core's schemas say of a document, as JSON; all of them are read for each, so it is asked once."""
    document = json.loads(text)
    said = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            said.append(_sentence(error))
        except (kubernetes_validate.SchemaNotFoundError, KeyError):
            said.append(f"there is no {document.get('kind')} in {document.get('apiVersion')}")
    return tuple(said)


def _sentence(error: jsonschema.ValidationError) -> str:
    return f"{'.'.join(str(part) for part in error.absolute_path) or 'the whole'}: {error.message}"
