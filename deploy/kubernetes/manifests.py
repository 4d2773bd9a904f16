"""Build an overlay with kustomize, and find the pods in it."""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

Document = Mapping[str, Any]
IN_CLUSTER: Final = re.compile(r"[a-z0-9.-]+?\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?")
"""The name of a service in the cluster; the group matches its namespace."""


class NotBuilt(Exception):  # noqa: N818  # a sentence for a person
    """kustomize rejects the overlay; the message is that of kustomize."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A resource that creates pods: its name, the labels and specification of its pods, and the volumes it claims."""

    kind: str
    name: str
    namespace: str
    labels: Mapping[str, str]
    pod: Mapping[str, Any]
    claims: frozenset[str]

    @property
    def where(self) -> str:
        """Its name in messages."""
        return f"{self.kind} {self.name}"

    @property
    def component(self) -> str:
        """The component of dupwatch that it runs, empty if it has no such label."""
        return self.labels.get("app.kubernetes.io/component", "")

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        """All containers, including init containers."""
        return [*self.pod.get("initContainers", ()), *self.pod["containers"]]


def build(kustomize: Sequence[str], overlay: Path) -> list[Document]:
    """Return the documents of an overlay. Raises ``NotBuilt``."""
    ran = subprocess.run([*kustomize, overlay], capture_output=True, text=True, check=False)  # noqa: S603  # ours
    if ran.returncode:
        raise NotBuilt(ran.stderr.strip())
    return read(ran.stdout)


def read(text: str) -> list[Document]:
    """Return the documents of a YAML stream."""
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document is not None]


def name_of(document: Document) -> str:
    """Return kind and name, as messages show them."""
    return f"{document.get('kind')} {document.get('metadata', {}).get('name')}"


def namespace_of(document: Document) -> str:
    """Return the namespace of a document, empty if it has none."""
    return str(document["metadata"].get("namespace", ""))


def of_kind(documents: Sequence[Document], *kinds: str) -> Iterator[Document]:
    """Return the documents of these kinds."""
    return (document for document in documents if document["kind"] in kinds)


def workloads(documents: Sequence[Document]) -> list[Workload]:
    """Return the Deployments, StatefulSets, DaemonSets, Jobs and CronJobs."""
    found = []
    for document in of_kind(documents, "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"):
        spec = document["spec"]["jobTemplate"]["spec"] if document["kind"] == "CronJob" else document["spec"]
        template = spec["template"]
        labels = template["metadata"]["labels"]
        name, namespace = document["metadata"]["name"], namespace_of(document)
        claims = frozenset(claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", ()))
        found.append(Workload(document["kind"], name, namespace, labels, template["spec"], claims))
    return found


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a label selector matches these labels."""
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
