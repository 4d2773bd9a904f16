"""Check that everything named in the manifests exists: configuration, secrets, accounts, volumes, ports, labels."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deploy.kubernetes.manifests import Document, Workload, name_of, namespace_of, of_kind, selects, workloads

CLUSTER_WIDE = frozenset({"Namespace"})


def reference_faults(documents: Sequence[Document], secrets: Sequence[Document]) -> Iterator[str]:
    """Yield references to missing objects, selectors without pods, and objects defined twice or without a namespace.

    ``secrets`` are created separately.
    """
    yield from _identities(documents)
    pods = workloads(documents)
    known = [*documents, *secrets]
    for workload in pods:
        yield from _named_objects(workload, known)
        yield from _mounts(workload)
        yield from _ports(workload)
    for document in documents:
        yield from _selections(document, documents, pods)
    yield from _credential_faults(documents, known)


def keys_of(documents: Sequence[Document], kind: str, namespace: str, name: str) -> set[str] | None:
    """Return the keys of a ConfigMap or Secret, or None if it does not exist."""
    for document in of_kind(documents, kind):
        if (namespace_of(document), document["metadata"]["name"]) == (namespace, name):
            return {key for part in ("data", "stringData", "binaryData") for key in document.get(part) or ()}
    return None


def container_ports(workload: Workload) -> dict[str, int]:
    """Return the numbers of the named ports, by name."""
    return {
        port["name"]: port["containerPort"]
        for container in workload.containers
        for port in container.get("ports", ())
        if "name" in port
    }


def _identities(documents: Sequence[Document]) -> Iterator[str]:
    counted = Counter((name_of(document), namespace_of(document)) for document in documents)
    yield from (f"{name} is defined {times} times" for (name, _), times in counted.items() if times > 1)
    for document in documents:
        if document["kind"] not in CLUSTER_WIDE and not namespace_of(document):
            yield f"{name_of(document)} has no namespace"


def _named_objects(workload: Workload, known: Sequence[Document]) -> Iterator[str]:
    for kind, name, keys in _needed_objects(workload):
        found = keys_of(known, kind, workload.namespace, name)
        if found is None:
            yield f"{workload.where} names the {kind} {name}, which does not exist"
        else:
            yield from (
                f"{workload.where} names {key} in the {kind} {name}, which does not have it" for key in keys - found
            )
    account = workload.pod.get("serviceAccountName", "default")
    accounts = {(namespace_of(account), account["metadata"]["name"]) for account in of_kind(known, "ServiceAccount")}
    if (workload.namespace, account) not in accounts:
        yield f"{workload.where} runs as the account {account}, which does not exist"


def _needed_objects(workload: Workload) -> Iterator[tuple[str, str, set[str]]]:
    """Yield kind, name and keys of each ConfigMap and Secret that the pods need."""
    mounts = [mount for container in workload.containers for mount in container.get("volumeMounts", ())]
    for volume in workload.pod.get("volumes", ()):
        keys = {mount["subPath"] for mount in mounts if mount["name"] == volume["name"] and "subPath" in mount}
        for field, kind, named in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            if field in volume:
                yield kind, volume[field][named], keys | {item["key"] for item in volume[field].get("items", ())}
    for container in workload.containers:
        yield from _environment(container)
    for secret in workload.pod.get("imagePullSecrets", ()):
        yield "Secret", secret["name"], set()


def _environment(container: Mapping[str, Any]) -> Iterator[tuple[str, str, set[str]]]:
    for variable in container.get("env", ()):
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            reference = variable.get("valueFrom", {}).get(field)
            if reference:
                yield kind, reference["name"], {reference["key"]}
    for source in container.get("envFrom", ()):
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if field in source:
                yield kind, source[field]["name"], set()


def _mounts(workload: Workload) -> Iterator[str]:
    volumes = {volume["name"] for volume in workload.pod.get("volumes", ())} | workload.claims
    mounted = {mount["name"] for container in workload.containers for mount in container.get("volumeMounts", ())}
    yield from (f"{workload.where} mounts the volume {name}, which is not defined" for name in mounted - volumes)
    yield from (f"{workload.where} has the volume {name}, which nothing mounts" for name in volumes - mounted)


def _ports(workload: Workload) -> Iterator[str]:
    for container in workload.containers:
        names = {port.get("name") for port in container.get("ports", ())}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            port = container.get(probe, {}).get("httpGet", {}).get("port")
            if isinstance(port, str) and port not in names:
                yield f"{workload.where}: its {probe} uses the port {port}, which {container['name']} does not have"


def _selections(document: Document, documents: Sequence[Document], pods: Sequence[Workload]) -> Iterator[str]:
    """Check the selectors of a document."""
    spec, where, namespace = document.get("spec", {}), name_of(document), namespace_of(document)
    here = [workload for workload in pods if workload.namespace == namespace]
    match document["kind"]:
        case "Deployment" | "StatefulSet" | "DaemonSet":
            if not selects(spec["selector"], spec["template"]["metadata"]["labels"]):
                yield f"{where} does not select its own pods"
            yield from _spread_faults(where, spec["template"])
            if (governing := spec.get("serviceName")) is not None:
                yield from _governing_service_faults(where, governing, spec["template"], documents, namespace)
        case "Service":
            chosen = _chosen({"matchLabels": spec.get("selector", {})}, here)
            ports = [port.get("targetPort", port["port"]) for port in spec["ports"]]
            yield from _selection_faults(where, chosen, ports)
        case "PodDisruptionBudget":
            yield from _selection_faults(where, _chosen(spec["selector"], here), [])
        case "ServiceMonitor":
            yield from _monitor_faults(
                where, spec, [entry for entry in of_kind(documents, "Service") if namespace_of(entry) == namespace]
            )
        case "NetworkPolicy":
            yield from _policy(document, here, pods)
        case _:
            pass


def _chosen(selector: Mapping[str, Any], pods: Sequence[Workload]) -> list[Workload]:
    return [workload for workload in pods if selects(selector, workload.labels)]


def _selection_faults(where: str, chosen: Sequence[Workload], ports: Sequence[int | str]) -> Iterator[str]:
    if not chosen:
        yield f"{where} selects no pods"
    for workload in chosen:
        named = container_ports(workload)
        for port in ports:
            if port not in named and port not in named.values():
                yield f"{where} names the port {port}, which {workload.where} does not have"


def _spread_faults(where: str, template: Mapping[str, Any]) -> Iterator[str]:
    for constraint in template["spec"].get("topologySpreadConstraints", ()):
        if not selects(constraint["labelSelector"], template["metadata"]["labels"]):
            yield f"{where} spreads pods over {constraint['topologyKey']} that are not its own"


def _governing_service_faults(
    where: str, name: str, template: Mapping[str, Any], documents: Sequence[Document], namespace: str
) -> Iterator[str]:
    """Check the service that gives the pods of a StatefulSet their names."""
    for service in of_kind(documents, "Service"):
        if (namespace_of(service), service["metadata"]["name"]) == (namespace, name):
            if not selects({"matchLabels": service["spec"].get("selector", {})}, template["metadata"]["labels"]):
                yield f"{where} is named by the Service {name}, which selects other pods"
            return
    yield f"{where} is named by the Service {name}, which does not exist"


def _monitor_faults(where: str, spec: Mapping[str, Any], services: Sequence[Document]) -> Iterator[str]:
    chosen = [service for service in services if selects(spec["selector"], service["metadata"].get("labels", {}))]
    if not chosen:
        yield f"{where} selects no service"
    for service in chosen:
        names = {port.get("name") for port in service["spec"]["ports"]}
        for endpoint in spec["endpoints"]:
            if endpoint.get("port") not in names:
                yield f"{where} names the port {endpoint.get('port')}, which {name_of(service)} does not have"


def _policy(document: Document, here: Sequence[Workload], pods: Sequence[Workload]) -> Iterator[str]:
    """Check that a policy for our pods selects some, and that its ingress ports and our pods among its peers exist."""
    spec, where = document["spec"], name_of(document)
    chosen = _chosen(spec["podSelector"], here)
    if here and not chosen:
        yield f"{where} selects no pods"
    for rule in spec.get("ingress", ()):
        names = [port["port"] for port in rule.get("ports", ()) if isinstance(port.get("port"), str)]
        yield from _selection_faults(where, chosen, names) if names else ()
    peers = [peer for rule in spec.get("ingress", ()) for peer in rule.get("from", ())]
    peers += [peer for rule in spec.get("egress", ()) for peer in rule.get("to", ())]
    for peer in peers:
        namespace = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name")
        theirs = [workload for workload in pods if workload.namespace == namespace]
        if theirs and not _chosen(peer.get("podSelector", {}), theirs):
            yield f"{where} admits pods of {namespace} that do not exist"


def _credential_faults(documents: Sequence[Document], known: Sequence[Document]) -> Iterator[str]:
    """Yield the missing keys of secrets that resources other than pods name."""
    for document in documents:
        for name, key in _credentials(document):
            if key not in (keys_of(known, "Secret", namespace_of(document), name) or ()):
                yield f"{name_of(document)} names {key} in the Secret {name}, which does not have it"


def _credentials(document: Document) -> Iterator[tuple[str, str]]:
    """Yield secret and key of each credential."""
    if document["kind"] == "TriggerAuthentication":
        for reference in document["spec"].get("secretTargetRef", ()):
            yield reference["name"], reference["key"]
    if document["kind"] == "ServiceMonitor":
        for endpoint in document["spec"]["endpoints"]:
            for reference in endpoint.get("basicAuth", {}).values():
                yield reference["name"], reference["key"]
            if (token := endpoint.get("authorization", {}).get("credentials")) is not None:
                yield token["name"], token["key"]
            if "secret" in (authority := endpoint.get("tlsConfig", {}).get("ca", {})):
                yield authority["secret"]["name"], authority["secret"]["key"]
