"""Compare the chart with the overlays of ``deploy/kubernetes``: ``python -m deploy.helm.comparison``.

With ``values/NAME.yaml`` the chart makes the same objects as the overlay NAME, except for what Helm does in
another way:

- It has no Namespace: Helm installs into one that exists.
- The names of ConfigMaps have no digest at their end. Pods have a digest of the file in an annotation instead.
- The names of Jobs end in a digest, since Helm cannot change a Job.
- All objects have Helm's labels. Selectors name the release, so that a namespace can hold several.
- The names of network policies begin with that of the release.

It needs Helm, which takes minutes to build. So it writes digests of what it compared to ``compared.json``, and ``make
test`` fails if the chart or an overlay has changed since.
"""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

try:
    from deploy.kubernetes import tools
    from deploy.kubernetes.manifests import Document, NotBuilt, build, read
    from deploy.local.packages import MissingTools
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    sys.exit(f"This needs {error.name} from the test environment; create that with: make .venv/test.stamp")

FOLDER: Final = Path(__file__).parent
CHART: Final = FOLDER / "dupwatch"
VALUES: Final = FOLDER / "values"
OVERLAYS: Final = FOLDER.parent / "kubernetes" / "overlays"
COMPARED: Final = FOLDER / "compared.json"
RELEASE: Final = "dupwatch"
"""The name of the release, and of its namespace, that the overlays correspond to."""
KUBERNETES: Final = "1.29"
"""The version that the chart is rendered for, the oldest of ``schemas.VERSIONS``."""

_HELM_LABELS: Final = frozenset(
    {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"}
)
_UNLABELLED: Final = frozenset({"ConfigMap", "NetworkPolicy"})
"""Kinds whose objects have no labels in the overlays."""
_GENERATED: Final = frozenset({CHART / "values.schema.json", CHART / "files" / "rules.yaml"})
_CHECKSUM: Final = "checksum/"
_FILE_DIGEST: Final = re.compile(r"^(dupwatch-(?:config|hbase-site))-[a-z0-9]{10}$")
_JOB_DIGEST: Final = re.compile(r"-[0-9a-f]{8}$")


class Identity(NamedTuple):
    """What tells objects apart."""

    kind: str
    namespace: str
    name: str


Objects = Mapping[Identity, Document]


def render(helm: Sequence[str], *arguments: str | Path, release: str = RELEASE, namespace: str = RELEASE) -> str:
    """Return what ``helm template`` prints for the chart. Raises ``NotBuilt`` with Helm's message."""
    options = ["--namespace", namespace, "--kube-version", KUBERNETES]
    command = [*helm, "template", release, CHART, *options, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # ours
    if ran.returncode:
        raise NotBuilt(ran.stderr.strip())
    return ran.stdout


def objects_of_overlay(documents: Sequence[Document]) -> Objects:
    """Return the objects of an overlay as the chart names them."""
    return _by_identity(_plain(document) for document in documents if document["kind"] != "Namespace")


def objects_of_chart(documents: Sequence[Document]) -> Objects:
    """Return the objects of the chart without what only Helm has."""
    return _by_identity(_without_helm(_plain(document)) for document in documents)


def differences(overlay: Objects, chart: Objects) -> Iterator[str]:
    """Yield a sentence for each difference."""
    for identity in sorted(overlay.keys() | chart.keys()):
        where = f"{identity.kind} {identity.name}"
        if identity not in chart:
            yield f"{where} is in the overlay alone"
        elif identity not in overlay:
            yield f"{where} is in the chart alone"
        else:
            yield from (f"{where}: {fault}" for fault in _unequal("", overlay[identity], chart[identity]))


def digest(objects: Objects) -> str:
    """Return a digest of objects; their order does not count."""
    listed = sorted(objects.items())
    return hashlib.sha256(json.dumps(listed, sort_keys=True, default=str).encode()).hexdigest()


def chart_digest(chart: Path = CHART, values: Path = VALUES) -> str:
    """Return a digest of the files that decide what the chart makes, but not of generated ones: tests compare those."""
    summed = hashlib.sha256()
    for folder in (chart, values):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = b"" if path in _GENERATED else path.read_bytes()
            summed.update(f"{path.relative_to(folder)} {len(content)}\n".encode() + content)
    return summed.hexdigest()


def _written(objects: Objects) -> Objects:
    """Return the objects that people write. A change of the alert rules changes the chart's file of them too."""
    return {identity: document for identity, document in objects.items() if identity.kind != "PrometheusRule"}


def _by_identity(documents: Iterator[Document]) -> Objects:
    found: dict[Identity, Document] = {}
    for document in documents:
        metadata = document["metadata"]
        identity = Identity(document["kind"], metadata.get("namespace", ""), metadata["name"])
        if identity in found:
            raise NotBuilt(f"{identity.kind} {identity.name} is there twice")
        found[identity] = document
    return found


def _plain(document: Document) -> Document:
    """Parse the files of ConfigMaps, and remove the digests that kustomize appends to their names."""
    if document["kind"] == "ConfigMap":
        document = {**document, "data": {name: _parsed(name, text) for name, text in document["data"].items()}}
    return {key: _without_digests(value) for key, value in document.items()}


def _parsed(name: str, text: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        return tomllib.loads(text)
    return {str(entry.findtext("name")): entry.findtext("value") for entry in ET.fromstring(text)}  # noqa: S314  # ours


def _without_digests(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_digests(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_digests(inner) for inner in value]
    return _FILE_DIGEST.sub(r"\1", value) if isinstance(value, str) else value


def _without_helm(document: Document) -> Document:
    stripped = {key: _stripped(value) for key, value in document.items()}
    kind, metadata = document["kind"], dict(_stripped(document["metadata"]))
    if kind in _UNLABELLED:
        metadata.pop("labels", None)
    if kind == "Job":
        metadata["name"] = _JOB_DIGEST.sub("", metadata["name"])
    if kind == "NetworkPolicy":
        metadata["name"] = metadata["name"].removeprefix(f"{RELEASE}-").removeprefix(f"{RELEASE}-")
    return {**stripped, "metadata": metadata}


def _stripped(value: Any) -> Any:  # noqa: ANN401  # what YAML has
    """Remove Helm's labels and the checksums of files, and maps that are empty without them."""
    if isinstance(value, list):
        return [_stripped(inner) for inner in value]
    if not isinstance(value, Mapping):
        return value
    kept = {
        key: _stripped(inner)
        for key, inner in value.items()
        if key not in _HELM_LABELS and not key.startswith(_CHECKSUM)
    }
    return {key: inner for key, inner in kept.items() if inner != {} or value[key] == {}}


def _unequal(path: str, overlay: object, chart: object) -> Iterator[str]:
    """Yield the innermost differences of two values."""
    if isinstance(overlay, Mapping) and isinstance(chart, Mapping):
        for key in sorted(overlay.keys() | chart.keys()):
            yield from _unequal(f"{path}.{key}", overlay.get(key), chart.get(key))
    elif isinstance(overlay, list) and isinstance(chart, list) and len(overlay) == len(chart):
        for index, (one, other) in enumerate(zip(overlay, chart, strict=True)):
            yield from _unequal(f"{path}.{index}", one, other)
    elif (type(overlay), overlay) != (type(chart), chart):
        there, here = json.dumps(overlay, default=str), json.dumps(chart, default=str)
        yield f"{path.removeprefix('.')} is {here}, but {there} in the overlay"


def overlays() -> list[Path]:
    """Return the overlays."""
    return sorted(path for path in OVERLAYS.iterdir() if path.is_dir())


def record(kustomize: Sequence[str]) -> dict[str, Any]:
    """Return the digests of the chart's files, and of each overlay's objects. Raises ``NotBuilt``."""
    built = {path.name: digest(_written(objects_of_overlay(build(kustomize, path)))) for path in overlays()}
    return {"chart": chart_digest(), "overlays": built}


def main() -> int:
    """Compare all overlays and return the exit code. Where nothing differs, write ``compared.json``."""
    try:
        kustomize, helm = tools.kustomize(), tools.helm()
        found = [
            f"{path.name}: {difference}"
            for path in overlays()
            for difference in differences(
                objects_of_overlay(build(kustomize, path)),
                objects_of_chart(read(render(helm, "--values", VALUES / f"{path.name}.yaml"))),
            )
        ]
        if not found:
            COMPARED.write_text(json.dumps(record(kustomize), indent=2) + "\n")
    except (MissingTools, NotBuilt, subprocess.CalledProcessError) as error:
        found = [str(error)]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
