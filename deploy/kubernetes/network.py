"""Check that network policies let pods reach what they need, and let nobody else reach the gateway."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from deploy.kubernetes.manifests import (
    IN_CLUSTER,
    Document,
    Workload,
    name_of,
    namespace_of,
    of_kind,
    selects,
    workloads,
)
from deploy.kubernetes.program import Settings

_PLACE: Final = re.compile(r"([a-z]+)://(.+)")
_SCHEME_PORTS: Final = {"hbase": "9090", "http": "80", "https": "443", "postgresql": "5432"}
_NAMES_PORT: Final = 53
_CONNECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "consumer": ("source.url", "sink.url", "store.url", "registry.url", "tracing.endpoint"),
    "topics": ("source.url", "sink.url"),
    "pack": ("store.url",),
    "serve": ("sink.url", "store.url", "tracing.endpoint"),
    "console": ("source.url", "sink.url", "store.url", "console.database"),
}
"""The settings that name the addresses each component connects to."""
_GUARDED: Final = {"store.url": "gateway", "console.database": "database"}
"""The servers that admit only pods that a policy of this overlay names, by the setting with their address."""
_OUTSIDE: Final = ""


class Place(NamedTuple):
    """A port of services in a namespace of the cluster, or, with an empty namespace, a port outside the cluster."""

    namespace: str
    port: int

    def __str__(self) -> str:
        return f"{self.namespace}:{self.port}" if self.namespace else f"port {self.port} outside the cluster"


def network_faults(documents: Sequence[Document], settings: Settings) -> Iterator[str]:
    """Yield missing connections, and policies that let too many pods reach the gateway."""
    policies = list(of_kind(documents, "NetworkPolicy"))
    for workload in workloads(documents):
        ours = [policy for policy in policies if _applies(policy, workload.namespace, workload.labels, "Egress")]
        for setting in _CONNECTIONS.get(workload.component, ()):
            for place in addressed_places(_value(settings, setting)):
                if not any(_lets_out(policy, place) for policy in ours):
                    yield f"{workload.where} has no egress to {place}, which {setting} names"
                guarded = _GUARDED.get(setting)
                if guarded and place.namespace and not any(_lets_in(policy, place, workload) for policy in policies):
                    yield f"{workload.where} has no ingress to the {guarded} at {place}"
        if not any(_port_open(rule, _NAMES_PORT) for policy in ours for rule in policy["spec"].get("egress", ())):
            yield f"{workload.where} has no egress to DNS"
    for policy in policies:
        if any(namespace_of(policy) == place.namespace for place in addressed_places(_value(settings, "store.url"))):
            yield from _gateway_faults(policy)


def _value(settings: Settings, setting: str) -> str:
    """Return the URL in a setting, empty if it is not set or its section is not enabled."""
    section, name = setting.split(".")
    found = settings.sections[section]
    return str(found.get(name, "")) if found.get("enabled", True) else ""


def addressed_places(url: str) -> list[Place]:
    """Return the places of the addresses in a URL, or in several URLs separated by commas."""
    found = _PLACE.fullmatch(url)
    if found is None or found[1] not in {"kafka", *_SCHEME_PORTS}:
        return []
    addresses = [_address(authority, _SCHEME_PORTS.get(scheme, "")) for scheme, authority in _authorities(url)]
    return sorted(
        {
            Place(service[1] if (service := IN_CLUSTER.fullmatch(host)) is not None else _OUTSIDE, int(port))
            for host, port in addresses
            if port.isdigit()
        }
    )


def _authorities(url: str) -> Iterator[tuple[str, str]]:
    """Yield scheme and address of each place in a URL, or in several. Kafka's topics are separated by commas, too."""
    scheme, in_path = "", False
    for part in url.split(","):
        before, is_url, rest = part.rpartition("://")
        if is_url or not in_path:
            scheme = before or scheme
            authority, slash, _ = rest.partition("/")
            in_path = bool(slash)
            yield scheme, authority.rpartition("@")[2]


def _address(text: str, usual_port: str) -> tuple[str, str]:
    host, _, port = text.rpartition(":")
    return (host, port) if port.isdigit() else (text, usual_port)


def _applies(policy: Document, namespace: str, labels: Mapping[str, str], direction: str) -> bool:
    spec = policy["spec"]
    return (
        namespace_of(policy) == namespace and direction in spec["policyTypes"] and selects(spec["podSelector"], labels)
    )


def _lets_out(policy: Document, place: Place) -> bool:
    return any(
        _port_open(rule, place.port) and any(_includes(peer, place) for peer in rule.get("to", ()))
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


def _gateway_faults(policy: Document) -> Iterator[str]:
    """Yield a fault for each rule that has no peers, or a peer whose ``podSelector`` is missing or empty."""
    for rule in policy["spec"].get("ingress", ()):
        if not rule.get("from") or not all(peer.get("podSelector") for peer in rule["from"]):
            yield f"{name_of(policy)} admits more than dupwatch to the gateway, which has no authentication"


def _includes(peer: Mapping[str, Any], place: Place) -> bool:
    return "ipBlock" in peer if place.namespace == _OUTSIDE else _of_namespace(peer, place.namespace)


def _of_namespace(peer: Mapping[str, Any], namespace: str) -> bool:
    chosen = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name")
    return bool(chosen == namespace)


def _port_open(rule: Mapping[str, Any], port: int) -> bool:
    return any(entry.get("port") == port for entry in rule.get("ports", ()))
