"""Whether pods are let through to what the configuration names, and nobody else to the gateway."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from deploy.kubernetes.manifests import Document, Workload, name_of, namespace_of, of_kind, selects, workloads
from deploy.kubernetes.program import Settings

_PLACE: Final = re.compile(r"[a-z]+://([^/]+)/")
_SERVICE: Final = re.compile(r"[a-z0-9.-]+?\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?")
_NAMES_PORT: Final = 53
_TALKS: Final[Mapping[str, tuple[str, ...]]] = {
    "consumer": ("source", "sink", "store"),
    "topics": ("source", "sink"),
    "pack": ("store",),
}
"""The sections whose places a part of dupwatch talks to, by component."""


class Place(NamedTuple):
    """A service within the cluster."""

    namespace: str
    port: int


def network_faults(documents: Sequence[Document], settings: Settings) -> Iterator[str]:
    """Who cannot reach what he needs, and who can reach the gateway that should not."""
    policies = list(of_kind(documents, "NetworkPolicy"))
    for workload in workloads(documents):
        ours = [one for one in policies if _means(one, workload.namespace, workload.labels, "Egress")]
        for section in _TALKS.get(workload.component, ()):
            for place in _places(settings.sections[section]["url"]):
                if not any(_lets_out(policy, place) for policy in ours):
                    yield f"{workload.where} is not let out to {place.namespace}:{place.port} of {section}.url"
                if section == "store" and not any(_lets_in(policy, place, workload) for policy in policies):
                    yield f"{workload.where} is not let in by the gateway at {place.namespace}:{place.port}"
        if not any(_port_open(rule, _NAMES_PORT) for one in ours for rule in one["spec"].get("egress", ())):
            yield f"{workload.where} cannot ask for names"
    for policy in policies:
        if any(namespace_of(policy) == place.namespace for place in _places(settings.sections["store"]["url"])):
            yield from _open_gateway(policy)


def _places(url: str) -> list[Place]:
    """Those of a URL that are within the cluster."""
    found = _PLACE.match(url)
    if found is None:
        return []
    addresses = (address.rpartition(":") for address in found[1].split(","))
    services = ((_SERVICE.fullmatch(host), port) for host, _, port in addresses)
    return sorted({Place(service[1], int(port)) for service, port in services if service is not None})


def _means(policy: Document, namespace: str, labels: Mapping[str, str], direction: str) -> bool:
    spec = policy["spec"]
    return (
        namespace_of(policy) == namespace and direction in spec["policyTypes"] and selects(spec["podSelector"], labels)
    )


def _lets_out(policy: Document, place: Place) -> bool:
    return any(
        _port_open(rule, place.port) and any(_of_namespace(peer, place.namespace) for peer in rule.get("to", ()))
        for rule in policy["spec"].get("egress", ())
    )


def _lets_in(policy: Document, place: Place, workload: Workload) -> bool:
    return namespace_of(policy) == place.namespace and any(
        _port_open(rule, place.port)
        and any(
            _of_namespace(peer, workload.namespace) and selects(peer.get("podSelector", {}), workload.labels)
            for peer in rule.get("from", ())
        )
        for rule in policy["spec"].get("ingress", ())
    )


def _open_gateway(policy: Document) -> Iterator[str]:
    """A rule without peers, or with peers of whole namespaces, opens the gateway to more than is meant."""
    for rule in policy["spec"].get("ingress", ()):
        if not rule.get("from") or not all("podSelector" in peer for peer in rule["from"]):
            yield f"{name_of(policy)} lets more than dupwatch to the gateway, which asks nobody who he is"


def _of_namespace(peer: Mapping[str, Any], namespace: str) -> bool:
    chosen = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name")
    return bool(chosen == namespace)


def _port_open(rule: Mapping[str, Any], port: int) -> bool:
    return any(one.get("port") == port for one in rule.get("ports", ()))
