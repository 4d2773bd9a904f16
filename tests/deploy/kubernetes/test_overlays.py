"""The manifests hold, and one that is broken in any of these ways does not."""

import io
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from deploy.kubernetes import check
from deploy.kubernetes.manifests import NotBuilt, build, read, workloads
from tests.deploy.kubernetes.commands import read_command
from tests.deploy.kubernetes.conftest import KUBERNETES, OVERLAYS, Cluster, Rendered
from tests.examples import drawn

pytestmark = pytest.mark.servers

Copied = Callable[[str, str, str], Path]

GONE: Final = object()
NAMES: Final = [path.name for path in OVERLAYS]


class Break(NamedTuple):
    """One value changed in one document of an overlay, and a part of the sentence that has to follow."""

    kind: str
    name: str
    path: str
    value: object
    message: str
    overlay: str = "production"


CONSUMER: Final = ("Deployment", "dupwatch-consumer")
POD: Final = "spec.template.spec"
FIRST: Final = f"{POD}.containers.0"
SERVE: Final = ("Deployment", "dupwatch-serve")
CONSOLE: Final = ("Deployment", "dupwatch-console")
POSTGRESQL: Final = ("StatefulSet", "dupwatch-postgresql")
SCALER: Final = ("ScaledObject", "dupwatch-consumer")

UNKNOWN_OR_WRONG: Final = [
    Break(*CONSUMER, "spec.replcas", 2, "'replcas' was unexpected"),
    Break(*CONSUMER, "spec.minReadySeconds", "10", "'10' is not of type"),
    Break(*CONSUMER, f"{FIRST}.readinessProbe.httpGet.pth", "/readyz", "'pth' was unexpected"),
    Break(*CONSUMER, f"{POD}.securityContext.seccompProfile.typ", "x", "'typ' was unexpected"),
    Break(*CONSUMER, "apiVersion", "apps/v1beta1", "there is no Deployment in apps/v1beta1"),
    Break(*CONSUMER, "kind", "Deploymnt", "there is no Deploymnt"),
    Break("Service", "dupwatch-consumer", "spec.ports.0.port", "http", "'http' is not of type"),
    Break("CronJob", "dupwatch-pack", "spec.concurrencypolicy", "Forbid", "'concurrencypolicy' was unexpected"),
    Break("CronJob", "dupwatch-pack", "spec.jobTemplate.spec.backoffLimit", "3", "'3' is not of type"),
    Break("NetworkPolicy", "scraped", "spec.ingres", [], "'ingres' was unexpected"),
    Break("PodDisruptionBudget", "dupwatch-consumer", "spec.unhealthyPodEviction", "x", "was unexpected"),
    Break("ServiceMonitor", "dupwatch-consumer", "spec.endpoints.0.intervall", "15s", "'intervall' was unexpected"),
    Break("ServiceMonitor", "dupwatch-consumer", "spec.endpoints.0.interval", "often", "does not match"),
    Break("ServiceMonitor", "dupwatch-consumer", "metadata.lables", {}, "'lables' was unexpected"),
    Break("PrometheusRule", "dupwatch", "spec.groups", [{"nme": "x"}], "'nme' was unexpected"),
    Break(*SCALER, "spec.maxReplicas", 3, "'maxReplicas' was unexpected"),
    Break(*SCALER, "spec.minReplicaCount", "2", "'2' is not of type"),
    Break(*SCALER, "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDwn", {}, "'scaleDwn' was unexpected"),
    Break(*SCALER, "spec.triggers", GONE, "'triggers' is a required property"),
    Break("TriggerAuthentication", "dupwatch-kafka", "spec.secretTargetRef.0.paramter", "x", "was unexpected"),
]
NOT_THERE: Final = [
    Break(*CONSUMER, "metadata.namespace", GONE, "Deployment dupwatch-consumer has no namespace"),
    Break("ConfigMap", "dupwatch-config", "metadata.name", "other", "names the ConfigMap dupwatch-config"),
    Break("ServiceAccount", "dupwatch", "metadata.name", "other", "runs as the account dupwatch"),
    Break(
        "Secret",
        "dupwatch-kafka",
        "metadata.name",
        "other",
        "Deployment dupwatch-consumer names the Secret dupwatch-kafka",
    ),
    Break("Secret", "dupwatch-kafka", "stringData.ca.crt", GONE, "TriggerAuthentication dupwatch-kafka names ca.crt"),
    Break("Job", "dupwatch-tables", f"{FIRST}.volumeMounts.0.subPath", "hbase.xml", "names hbase.xml in the ConfigMap"),
    Break(
        "ServiceMonitor",
        "dupwatch-consumer",
        "spec.endpoints.0.basicAuth",
        {"password": {"name": "none", "key": "password"}},
        "ServiceMonitor dupwatch-consumer names password in the Secret none",
    ),
    Break(*CONSUMER, f"{FIRST}.volumeMounts.0.name", "elsewhere", "mounts the volume elsewhere"),
    Break(*CONSUMER, f"{FIRST}.volumeMounts", [], "has the volume tmp, which nothing mounts"),
    Break(*CONSUMER, f"{FIRST}.ports.0.name", "web", "its readinessProbe uses the port http"),
    Break(
        *CONSUMER,
        f"{FIRST}.env",
        [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "names the Secret s",
    ),
    Break(*CONSUMER, f"{FIRST}.envFrom", [{"configMapRef": {"name": "c"}}], "names the ConfigMap c"),
    Break(*CONSUMER, f"{POD}.imagePullSecrets", [{"name": "pull"}], "names the Secret pull"),
    Break(*CONSUMER, "spec.selector.matchLabels.tier", "x", "does not select its own pods"),
    Break(*CONSUMER, f"{POD}.topologySpreadConstraints.0.labelSelector.matchLabels.tier", "x", "not its own"),
    Break("Service", "dupwatch-consumer", "spec.selector.tier", "x", "Service dupwatch-consumer selects no pods"),
    Break("Service", "dupwatch-consumer", "spec.ports.0.targetPort", "web", "names the port web"),
    Break(
        "Service",
        "dupwatch-consumer",
        "spec.ports.0.name",
        "web",
        "ServiceMonitor dupwatch-consumer names the port http",
    ),
    Break("Service", "dupwatch-consumer", "metadata.labels", {}, "ServiceMonitor dupwatch-consumer selects no service"),
    Break("PodDisruptionBudget", "dupwatch-consumer", "spec.selector.matchLabels.tier", "x", "selects no pods"),
    Break(
        "NetworkPolicy", "to-hbase", "spec.podSelector.matchLabels.tier", "x", "NetworkPolicy to-hbase selects no pods"
    ),
    Break("NetworkPolicy", "scraped", "spec.ingress.0.ports.0.port", "web", "NetworkPolicy scraped names the port web"),
    Break(
        "NetworkPolicy",
        "thrift-gateway",
        "spec.ingress.0.from.0.podSelector.matchExpressions.0.values",
        ["packer"],
        "admits pods of dupwatch that do not exist",
    ),
    Break("PodDisruptionBudget", "dupwatch-consumer", "metadata.namespace", "elsewhere", "selects no pods"),
]
NOT_AS_THE_PROGRAM: Final = [
    Break(*CONSUMER, f"{POD}.terminationGracePeriodSeconds", 59, "killed after 59 s, but kafka.grace_s allows 60 s"),
    Break(*CONSUMER, f"{POD}.terminationGracePeriodSeconds", GONE, "killed after 30 s"),
    Break(*CONSUMER, f"{FIRST}.readinessProbe.httpGet.path", "/ready", "requests /ready, which is not a page"),
    Break(*CONSUMER, f"{FIRST}.livenessProbe", GONE, "its livenessProbe requests None"),
    Break(*CONSUMER, f"{FIRST}.ports.0.containerPort", 8080, "has no port http at 9464"),
    Break(*CONSUMER, f"{FIRST}.args.2", "/etc/dupwatch/config.toml", "reads /etc/dupwatch/config.toml"),
    Break(*CONSUMER, f"{POD}.volumes.0.name", "kafka-two", "the configuration names /run/secrets/kafka/"),
    Break(
        "Secret",
        "dupwatch-gateway",
        "stringData.tls.key",
        GONE,
        "CronJob dupwatch-pack: the configuration names /run/secrets/gateway/tls.key",
    ),
    Break("ServiceMonitor", "dupwatch-consumer", "spec.endpoints.0.path", "/metric", "scrapes /metric"),
    Break("ServiceMonitor", "dupwatch-consumer", "spec.endpoints.0.scheme", GONE, "sends a secret over plain HTTP"),
    Break("ServiceMonitor", "dupwatch-consumer", "spec.endpoints.0.scheme", "http", "the pages are served over https"),
    Break("ServiceMonitor", "dupwatch-consumer", "spec.endpoints.0.basicAuth", GONE, "has no basicAuth"),
    Break(
        "ServiceMonitor",
        "dupwatch-consumer",
        "spec.endpoints.0.tlsConfig.ca.secret.key",
        "ca",
        "names ca in the Secret",
    ),
    Break(*CONSUMER, f"{FIRST}.livenessProbe.httpGet.scheme", "HTTP", "its livenessProbe uses http"),
    Break(
        "Job",
        "dupwatch-tables",
        f"{POD}.initContainers.0.command.2",
        "exec dupwatch store init --config /x",
        "reads /x",
    ),
]
LOOSE: Final = [
    Break(*CONSUMER, f"{POD}.securityContext.runAsNonRoot", GONE, "may run as root"),
    Break(*CONSUMER, f"{POD}.securityContext.seccompProfile", GONE, "has no seccomp profile"),
    Break(*CONSUMER, f"{POD}.automountServiceAccountToken", GONE, "mounts a service account token"),
    Break(*CONSUMER, f"{POD}.hostNetwork", value=True, message="shares a namespace of its host"),
    Break(
        *CONSUMER,
        f"{FIRST}.securityContext.allowPrivilegeEscalation",
        value=True,
        message="consumer: may escalate privileges",
    ),
    Break(*CONSUMER, f"{FIRST}.securityContext.readOnlyRootFilesystem", GONE, "has a writable root file system"),
    Break(*CONSUMER, f"{FIRST}.securityContext.capabilities", GONE, "has capabilities"),
    Break(*CONSUMER, f"{FIRST}.resources.requests.cpu", GONE, "does not request both CPU and memory"),
    Break(*CONSUMER, f"{FIRST}.resources.limits", GONE, "has no memory limit"),
    Break(*CONSUMER, f"{FIRST}.image", "registry.example.org:5000/dupwatch", "an image without a fixed version"),
    Break(*CONSUMER, f"{FIRST}.image", "dupwatch:latest", "an image without a fixed version"),
    Break("Job", "dupwatch-tables", f"{POD}.initContainers.0.securityContext", GONE, "script: has capabilities"),
    Break("NetworkPolicy", "deny-all", "spec.policyTypes", ["Ingress"], "has no default-deny policy"),
    Break("NetworkPolicy", "deny-all", "spec.egress", [{}], "has no default-deny policy"),
]
SHUT_OR_OPEN: Final = [
    Break(
        "NetworkPolicy",
        "to-kafka",
        "spec.egress.0.ports",
        [{"port": 9092}],
        "no egress to kafka:9093, which source.url names",
    ),
    Break(
        "NetworkPolicy",
        "to-kafka",
        "spec.egress.0.to.0.namespaceSelector.matchLabels",
        {"a": "b"},
        "no egress to kafka",
    ),
    Break(
        "NetworkPolicy",
        "to-kafka",
        "spec.podSelector.matchExpressions.0.values",
        ["consumer"],
        "Job dupwatch-topics has no egress",
    ),
    Break(
        "NetworkPolicy",
        "to-gateway",
        "spec.podSelector.matchExpressions.0.values",
        ["consumer"],
        "CronJob dupwatch-pack has no egress to hbase:9090",
    ),
    Break(
        "NetworkPolicy",
        "to-gateway",
        "spec.policyTypes",
        ["Ingress"],
        "Deployment dupwatch-consumer has no egress to hbase:9090",
    ),
    Break("NetworkPolicy", "names", "spec.egress.0.ports", [{"port": 5353}], "has no egress to DNS"),
    Break("NetworkPolicy", "thrift-gateway", "spec.ingress.0.ports.0.port", 9091, "has no ingress to the gateway"),
    Break(
        "NetworkPolicy",
        "thrift-gateway",
        "spec.ingress.0.from.0.podSelector.matchExpressions.0.values",
        ["consumer"],
        "CronJob dupwatch-pack has no ingress",
    ),
    Break(
        "NetworkPolicy",
        "thrift-gateway",
        "spec.ingress.0.from.0.podSelector",
        GONE,
        "admits more than dupwatch to the gateway",
    ),
    Break(
        "NetworkPolicy",
        "thrift-gateway",
        "spec.ingress.0.from.0.podSelector",
        {},
        "admits more than dupwatch to the gateway",
    ),
    Break("NetworkPolicy", "thrift-gateway", "spec.ingress.0.from", GONE, "admits more than dupwatch to the gateway"),
    Break("NetworkPolicy", "thrift-gateway", "metadata.namespace", "dupwatch", "has no ingress to the gateway"),
]
SCALED_WRONG: Final = [
    Break(*SCALER, "spec.scaleTargetRef.name", "consumer", "scales the Deployment consumer, which does not exist"),
    Break(*SCALER, "spec.maxReplicaCount", 24, "to 24 consumers, but the topic is created with 12"),
    Break(*SCALER, "spec.triggers.0.metadata.lagTreshold", "1", "has no field lagTreshold"),
    Break(*SCALER, "spec.triggers.0.metadata.topic", "article", "its topic is article"),
    Break(*SCALER, "spec.triggers.0.metadata.consumerGroup", "other", "its consumerGroup is other"),
    Break(*SCALER, "spec.triggers.0.metadata.bootstrapServers", "kafka:9093", "its bootstrapServers is kafka:9093"),
    Break(*SCALER, "spec.triggers.0.metadata.offsetResetPolicy", GONE, "its offsetResetPolicy is None"),
    Break(
        *SCALER, "spec.triggers.0.authenticationRef.name", "other", "TriggerAuthentication other, which does not exist"
    ),
    Break(*CONSUMER, "spec.replicas", 3, "both set the number of replicas"),
]
SERVED_WRONG: Final = [
    Break(*SERVE, f"{POD}.terminationGracePeriodSeconds", 44, "killed after 44 s, but service.drain_s allows 45 s"),
    Break(*SERVE, f"{FIRST}.ports.0.containerPort", 9464, "has no port http at 8750"),
    Break(*SERVE, f"{FIRST}.livenessProbe.httpGet.scheme", "HTTP", "its livenessProbe uses http"),
    Break(*SERVE, f"{FIRST}.readinessProbe.httpGet.path", "/ready", "requests /ready, which is not a page"),
    Break(*SERVE, f"{FIRST}.resources.limits", GONE, "has no memory limit"),
    Break("Secret", "dupwatch-tokens", "stringData.tokens.json", GONE, "names /run/secrets/tokens/tokens.json"),
    Break("Secret", "dupwatch-serve", "metadata.name", "other", "names the Secret dupwatch-serve"),
    Break("Secret", "dupwatch-scrape", "stringData.token", GONE, "names token in the Secret dupwatch-scrape"),
    Break("ServiceMonitor", "dupwatch-serve", "spec.endpoints.0.authorization", GONE, "has no authorization"),
    Break("ServiceMonitor", "dupwatch-serve", "spec.endpoints.0.scheme", "http", "sends a secret over plain HTTP"),
    Break("Service", "dupwatch-serve", "spec.ports.0.targetPort", "web", "names the port web"),
    Break("PodDisruptionBudget", "dupwatch-serve", "spec.selector.matchLabels.tier", "x", "selects no pods"),
    Break("NetworkPolicy", "served", "spec.ingress.0.ports.0.port", "web", "NetworkPolicy served names the port web"),
    Break(
        "NetworkPolicy",
        "to-kafka",
        "spec.podSelector.matchExpressions.0.values",
        ["consumer", "topics"],
        "Deployment dupwatch-serve has no egress to kafka:9093, which sink.url names",
    ),
    Break(
        "NetworkPolicy",
        "to-gateway",
        "spec.podSelector.matchExpressions.0.values",
        ["consumer", "pack"],
        "Deployment dupwatch-serve has no egress to hbase:9090",
    ),
    Break(
        "NetworkPolicy",
        "thrift-gateway",
        "spec.ingress.0.from.0.podSelector.matchExpressions.0.values",
        ["consumer", "pack"],
        "Deployment dupwatch-serve has no ingress",
    ),
]
CONSOLE_WRONG: Final = [
    Break(*CONSOLE, f"{POD}.terminationGracePeriodSeconds", 44, "killed after 44 s, but console.drain_s allows 45 s"),
    Break(*CONSOLE, f"{FIRST}.ports.0.containerPort", 8750, "has no port http at 8760"),
    Break(*CONSOLE, f"{FIRST}.startupProbe.httpGet.scheme", "HTTP", "its startupProbe uses http"),
    Break(*CONSOLE, f"{FIRST}.args.2", "/etc/dupwatch/console.toml", "reads /etc/dupwatch/console.toml"),
    Break("Secret", "dupwatch-database", "stringData.password", GONE, "names /run/secrets/database/password"),
    Break("Secret", "dupwatch-database", "stringData.ca.crt", GONE, "names /run/secrets/database/ca.crt"),
    Break("Secret", "dupwatch-console", "stringData.tls.key", GONE, "names /run/secrets/console/tls.key"),
    Break("Secret", "dupwatch-console", "stringData.ca.crt", GONE, "names ca.crt in the Secret dupwatch-console"),
    Break("ServiceMonitor", "dupwatch-console", "spec.endpoints.0.scheme", "http", "the pages are served over https"),
    Break("Service", "dupwatch-console", "spec.ports.0.targetPort", "web", "names the port web"),
    Break("PodDisruptionBudget", "dupwatch-console", "spec.selector.matchLabels.tier", "x", "selects no pods"),
    Break("NetworkPolicy", "console", "spec.ingress.0.ports.0.port", "web", "NetworkPolicy console names the port web"),
    Break(
        "NetworkPolicy",
        "to-kafka",
        "spec.podSelector.matchExpressions.0.values",
        ["consumer", "serve", "topics"],
        "Deployment dupwatch-console has no egress to kafka:9093, which sink.url names",
    ),
    Break(
        "NetworkPolicy",
        "thrift-gateway",
        "spec.ingress.0.from.0.podSelector.matchExpressions.0.values",
        ["consumer", "pack", "serve"],
        "Deployment dupwatch-console has no ingress to the gateway",
    ),
    Break(
        "NetworkPolicy",
        "to-database",
        "spec.egress.0.ports.0.port",
        5433,
        "Deployment dupwatch-console has no egress to port 5432 outside the cluster, which console.database names",
    ),
]
OWN_DATABASE_WRONG: Final = [
    Break(
        "NetworkPolicy",
        "to-database",
        "spec.egress.0.to.0.namespaceSelector.matchLabels",
        {"a": "b"},
        "Deployment dupwatch-console has no egress to dupwatch:5432, which console.database names",
        "small",
    ),
    Break(
        "NetworkPolicy",
        "postgresql",
        "spec.ingress.0.from.0.podSelector.matchLabels.app.kubernetes.io/component",
        "consumer",
        "Deployment dupwatch-console has no ingress to the database at dupwatch:5432",
        "small",
    ),
    Break(
        "NetworkPolicy",
        "postgresql",
        "spec.podSelector.matchLabels.tier",
        "x",
        "NetworkPolicy postgresql selects no pods",
        "small",
    ),
    Break("Secret", "dupwatch-database", "metadata.name", "other", "names the Secret dupwatch-database", "small"),
    Break(*POSTGRESQL, "spec.serviceName", "postgresql", "the Service postgresql, which does not exist", "small"),
    Break(*POSTGRESQL, "spec.serviceName", "dupwatch-console", "which selects other pods", "small"),
    Break(*POSTGRESQL, "spec.volumeClaimTemplates.0.metadata.name", "other", "mounts the volume data", "small"),
    Break(*POSTGRESQL, f"{FIRST}.image", "docker.io/library/postgres", "an image without a fixed version", "small"),
    Break(*POSTGRESQL, f"{FIRST}.securityContext.readOnlyRootFilesystem", GONE, "has a writable root", "small"),
    Break("Service", "dupwatch-postgresql", "spec.ports.0.targetPort", "web", "names the port web", "small"),
]
ALL: Final = [
    *UNKNOWN_OR_WRONG,
    *NOT_THERE,
    *NOT_AS_THE_PROGRAM,
    *LOOSE,
    *SHUT_OR_OPEN,
    *SCALED_WRONG,
    *SERVED_WRONG,
    *CONSOLE_WRONG,
    *OWN_DATABASE_WRONG,
]


def changed(rendered: Rendered, change: Break) -> Rendered:
    """The overlay with that change. Names of generated ConfigMaps have a digest behind them."""
    (document,) = (
        found
        for found in [*rendered.documents, *rendered.secrets]
        if found["kind"] == change.kind and found["metadata"]["name"].startswith(change.name)
        if change.kind == "ConfigMap" or found["metadata"]["name"] == change.name
    )
    *parents, last = _steps(change.path)
    inner: Any = document
    for step in parents:
        inner = inner[step] if isinstance(inner, list) else inner.setdefault(step, {})
    if change.value is GONE:
        del inner[last]
    else:
        inner[last] = change.value
    return rendered


def _steps(path: str) -> list[Any]:
    """The parts of a path; a key with a dot in it stands at the end."""
    for parent in ("stringData", "matchLabels"):
        head, data, key = path.partition(f"{parent}.")
        if data:
            return [*_steps(head.removesuffix(".")), parent, key] if head else [parent, key]
    return [int(step) if step.isdigit() else step for step in path.split(".")]


@pytest.mark.parametrize("name", NAMES)
def test_an_overlay_holds(cluster: Cluster, name: str) -> None:
    """Nothing is wrong with the overlays as they are."""
    assert cluster.faults(cluster.rendered(name)) == []


@pytest.mark.parametrize(
    "broken", drawn(ALL, 3), ids=lambda broken: f"{broken.kind}-{broken.path}-{broken.message}"[:90]
)
def test_what_is_broken_is_told(cluster: Cluster, broken: Break) -> None:
    """Each single change is answered with a sentence about it."""
    faults = cluster.faults(changed(cluster.rendered(broken.overlay), broken))
    assert any(broken.message in fault.replace("dupwatch-config-", "dupwatch-config ") for fault in faults), faults


def test_a_name_twice_is_told(cluster: Cluster) -> None:
    """Of two documents with one name the cluster would keep the last."""
    rendered = cluster.rendered("small")
    rendered.documents.append(rendered.documents[-1])
    assert any("is defined 2 times" in fault for fault in cluster.faults(rendered))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("[judge]", "[judge]\nplans = 1", "unknown setting judge.plans"), ('"16x28"', '"17x28"', "17x28")],
)
def test_a_configuration_that_is_wrong_is_told(cluster: Cluster, old: str, new: str, message: str) -> None:
    """The program itself is asked about its configuration."""
    faults = cluster.faults(reconfigured(cluster.rendered("production"), {old: new}))
    assert len(faults) == 1
    assert message in faults[0]


def test_a_configuration_that_does_not_fit_is_told(cluster: Cluster) -> None:
    """The manifests are held against what the program makes of its configuration, defaults and all."""
    changes = {
        "0.0.0.0:9464": "127.0.0.1:9465",
        "[kafka.client]": "drain_s = 45\ngrace_s = 65\n[kafka.client]",
        "/run/secrets/kafka/password": "/run/secrets/kafka/pass",
        "thrift-gateway-1.thrift-gateway.hbase.svc:9090": "gateway.other.svc.cluster.local:9095",
    }
    faults = "\n".join(cluster.faults(reconfigured(cluster.rendered("production"), changes)))
    for message in (
        "where probes cannot reach it",
        "has no port http at 9465",
        "killed after 60 s, but kafka.grace_s allows 65 s",
        "names /run/secrets/kafka/pass",
        "has no egress to other:9095",
        "has no ingress to the gateway at other:9095",
    ):
        assert message in faults


@pytest.mark.parametrize(
    ("component", "settings", "setting", "place", "asking"),
    [
        (
            "registry",
            '[registry]\nurl = "http://registry-0.kafka.svc:8081,http://registry-1.kafka.svc:8081"\n[judge]',
            "registry.url",
            "kafka:8081",
            ["consumer"],
        ),
        (
            "tracing",
            '[tracing]\nenabled = true\nendpoint = "http://otel.monitoring.svc:4318"\n[judge]',
            "tracing.endpoint",
            "monitoring:4318",
            ["consumer", "serve"],
        ),
    ],
)
def test_what_is_asked_besides_has_to_be_let_through(
    cluster: Cluster, component: str, settings: str, setting: str, place: str, asking: list[str]
) -> None:
    """The registry and the collector; each has a component that lets consumers out to it."""
    rendered = reconfigured(cluster.rendered("production"), {"[judge]": settings})
    assert cluster.faults(rendered) == [
        f"Deployment dupwatch-{name} has no egress to {place}, which {setting} names" for name in asking
    ]
    policies = read((KUBERNETES / "components" / component / "network.yaml").read_text())
    rendered.documents.extend(policies)
    assert cluster.faults(rendered) == []


def test_a_place_outside_of_the_cluster_has_to_be_let_through(cluster: Cluster) -> None:
    """By a rule for addresses; without one nothing that is not in a namespace is reached."""
    url = '[registry]\nurl = "https://registry.example.org"\n[judge]'
    rendered = reconfigured(cluster.rendered("production"), {"[judge]": url})
    assert cluster.faults(rendered) == [
        "Deployment dupwatch-consumer has no egress to port 443 outside the cluster, which registry.url names"
    ]
    (policy,) = read((KUBERNETES / "components" / "registry" / "network.yaml").read_text())
    outside = {"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}], "ports": [{"protocol": "TCP", "port": 443}]}
    rendered.documents.append({**policy, "spec": {**policy["spec"], "egress": [outside]}})
    assert cluster.faults(rendered) == []


def test_a_service_that_others_reach_needs_tokens(cluster: Cluster) -> None:
    """Without them it would not start, and on loopback no probe would reach it."""
    for changes, message in (
        ({'tokens = "/run/secrets/tokens/tokens.json"\n': ""}, "without service.tokens, which dupwatch refuses"),
        ({"0.0.0.0:8750": "127.0.0.1:8750"}, "Deployment dupwatch-serve listens on 127.0.0.1:8750, where probes"),
    ):
        faults = cluster.faults(reconfigured(cluster.rendered("production"), changes))
        assert any(message in fault for fault in faults), faults


def test_the_database_of_several_replicas_is_a_server(cluster: Cluster) -> None:
    """A file would be another one in each pod; and a server outside of the cluster is reached over TLS."""
    for overlay, changes, message in (
        (
            "small",
            {"postgresql://dupwatch@dupwatch-postgresql.dupwatch.svc:5432/console": "sqlite:////tmp/console.db"},
            "console.database is a file, which no other replica and no later pod has",
        ),
        ("production", {"sslmode=verify-full": "sslmode=require"}, "its sslmode is not verify-full"),
    ):
        faults = cluster.faults(reconfigured(cluster.rendered(overlay), changes))
        assert any(message in fault for fault in faults), faults


def reconfigured(rendered: Rendered, changes: Mapping[str, str]) -> Rendered:
    """The overlay with texts of its configuration replaced."""
    (config,) = (document for document in rendered.documents if "dupwatch.toml" in document.get("data", {}))
    for old, new in changes.items():
        assert old in config["data"]["dupwatch.toml"]
        config["data"]["dupwatch.toml"] = config["data"]["dupwatch.toml"].replace(old, new)
    return rendered


@pytest.mark.parametrize("name", NAMES)
def test_every_command_is_one(cluster: Cluster, name: str) -> None:
    """What the containers run are commands of the program, with options that it has."""
    commands = [
        _words(container)
        for workload in workloads(cluster.rendered(name).documents)
        for container in workload.containers
    ]
    ours = [words[words.index("dupwatch") + 1 :] for words in commands if "dupwatch" in words]
    assert len(ours) == (6 if name == "production" else 5)
    for words in ours:
        assert read_command(words)["config"] == Path("/etc/dupwatch/dupwatch.toml")


def _words(container: Mapping[str, Any]) -> list[str]:
    """A command as the program gets it, a shell around it taken away."""
    command, arguments = container.get("command", []), container.get("args", [])
    if command[:2] == ["sh", "-c"]:
        line = command[2].removeprefix("exec ").partition(">")[0]
        return [*line.replace('"$@"', "").split(), *arguments]
    return [*command, *arguments]


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    """Make a copy of the tree with one text replaced in one file; the production overlay in it."""

    def copy(file: str, old: str, new: str) -> Path:
        shutil.copytree(KUBERNETES, tmp_path / "kubernetes", dirs_exist_ok=True)
        path = tmp_path / "kubernetes" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return tmp_path / "kubernetes" / "overlays" / "production"

    return copy


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("base/consumer.yaml", "minReadySeconds", "minReadySecs", "'minReadySecs' was unexpected"),
        ("base/consumer.yaml", "replicas: 2", "replicas: two", ": ok"),
        ("overlays/production/consumer.yaml", "dupwatch-gateway", "dupwatch-gate", "names the Secret dupwatch-gate"),
        ("overlays/production/pack.yaml", "dupwatch-pack", "dupwatch-packer", "no matches for Id"),
        ("base/kustomization.yaml", "  - service-account.yaml\n", "", "runs as the account dupwatch"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_a_broken_file_fails_the_command(
    copied: Copied, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, message: str
) -> None:
    """A fault in a file comes through kustomize to the command's exit code; what an overlay takes away does no harm."""
    output = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["check", str(copied(file, old, new))])
    monkeypatch.setattr(sys, "stdout", output)
    assert check.main() == (message != ": ok")
    assert message in output.getvalue()


def test_what_kustomize_refuses_is_told(cluster: Cluster, copied: Copied) -> None:
    """A file that is not YAML, or not there, is kustomize's to refuse; its words are passed on."""
    overlay = copied("base/kustomization.yaml", "network.yaml", "networks.yaml")
    with pytest.raises(NotBuilt, match=r"networks\.yaml"):
        build(cluster.kustomize, overlay)
