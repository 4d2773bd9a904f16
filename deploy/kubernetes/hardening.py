"""Check that every pod and container gives up the privileges it does not need."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deploy.kubernetes.manifests import Document, Workload, namespace_of, of_kind, workloads

_PINNED: Final = re.compile(r".+(?:@sha256:[0-9a-f]{64}|:(?!latest$)[\w][\w.-]*)")


def hardening_faults(documents: Sequence[Document]) -> Iterator[str]:
    """Yield unneeded privileges, missing resources, unpinned images, and namespaces without a default-deny policy."""
    pods = workloads(documents)
    for workload in pods:
        yield from _pod(workload)
        for container in workload.containers:
            yield from (f"{workload.where}, {container['name']}: {fault}" for fault in _container(container))
    for namespace in sorted({workload.namespace for workload in pods}):
        if not any(_denies_all(policy, namespace) for policy in of_kind(documents, "NetworkPolicy")):
            yield f"the namespace {namespace} has no default-deny policy"


def _pod(workload: Workload) -> Iterator[str]:
    context = workload.pod.get("securityContext", {})
    if not context.get("runAsNonRoot"):
        yield f"{workload.where} may run as root"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"{workload.where} has no seccomp profile"
    if workload.pod.get("automountServiceAccountToken") is not False:
        yield f"{workload.where} mounts a service account token"
    if any(workload.pod.get(field) for field in ("hostNetwork", "hostPID", "hostIPC")):
        yield f"{workload.where} shares a namespace of its host"


def _container(container: Mapping[str, Any]) -> Iterator[str]:
    context, resources = container.get("securityContext", {}), container.get("resources", {})
    if context.get("allowPrivilegeEscalation") is not False:
        yield "may escalate privileges"
    if context.get("readOnlyRootFilesystem") is not True:
        yield "has a writable root file system"
    if context.get("capabilities", {}).get("drop") != ["ALL"]:
        yield "has capabilities"
    if not {"cpu", "memory"} <= set(resources.get("requests", ())):
        yield "does not request both CPU and memory"
    if "memory" not in resources.get("limits", ()):
        yield "has no memory limit"
    if not _PINNED.fullmatch(container["image"]):
        yield f"has an image without a fixed version: {container['image']}"


def _denies_all(policy: Document, namespace: str) -> bool:
    spec = policy["spec"]
    return (
        namespace_of(policy) == namespace
        and not spec["podSelector"]
        and set(spec.get("policyTypes", ())) == {"Ingress", "Egress"}
        and not spec.get("ingress")
        and not spec.get("egress")
    )
