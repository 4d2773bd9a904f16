"""What kustomize makes of an overlay, and where in it pods are."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Document = Mapping[str, Any]


class NotBuilt(Exception):  # noqa: N818  # a sentence for a person
    """kustomize refuses the overlay; the message is what it says."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Something that makes pods: what it is called, and its pods' labels and specification."""

    kind: str
    name: str
    namespace: str
    labels: Mapping[str, str]
    pod: Mapping[str, Any]

    @property
    def where(self) -> str:
        """As sentences name it."""
        return f"{self.kind} {self.name}"

    @property
    def component(self) -> str:
        """Which part of dupwatch it is."""
        return self.labels.get("app.kubernetes.io/component", "")

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        """All of them, those that come first too."""
        return [*self.pod.get("initContainers", ()), *self.pod["containers"]]


def build(kustomize: Sequence[str], overlay: Path) -> list[Document]:
    """The documents of an overlay. Raises ``NotBuilt``."""
    ran = subprocess.run([*kustomize, overlay], capture_output=True, text=True, check=False)  # noqa: S603  # our words
    if ran.returncode:
        raise NotBuilt(ran.stderr.strip())
    return read(ran.stdout)


def read(text: str) -> list[Document]:
    """The documents of a stream of YAML."""
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document is not None]


def name_of(document: Document) -> str:
    """As sentences name it."""
    return f"{document.get('kind')} {document.get('metadata', {}).get('name')}"


def namespace_of(document: Document) -> str:
    """Its namespace; nothing for what has none."""
    return str(document["metadata"].get("namespace", ""))


def of_kind(documents: Sequence[Document], *kinds: str) -> Iterator[Document]:
    """The documents of these kinds."""
    return (document for document in documents if document["kind"] in kinds)


def workloads(documents: Sequence[Document]) -> list[Workload]:
    """All that makes pods."""
    found = []
    for document in of_kind(documents, "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"):
        spec = document["spec"]["jobTemplate"]["spec"] if document["kind"] == "CronJob" else document["spec"]
        template = spec["template"]
        labels = template["metadata"]["labels"]
        name, namespace = document["metadata"]["name"], namespace_of(document)
        found.append(Workload(document["kind"], name, namespace, labels, template["spec"]))
    return found


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector means these labels."""
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        _fits(expression, labels) for expression in selector.get("matchExpressions", ())
    )


def _fits(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case _:
            return value is None
