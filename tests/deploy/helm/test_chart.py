"""The chart rendered by Helm: what it has in common with the overlays, and what it makes of odd values."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.helm import comparison
from deploy.kubernetes import check, tools
from deploy.kubernetes.hardening import hardening_faults
from deploy.kubernetes.manifests import NotBuilt, build, of_kind, workloads
from deploy.kubernetes.references import reference_faults
from deploy.kubernetes.schemas import read_schemas, schema_faults
from tests.deploy.helm.conftest import NAMES, Chart

pytestmark = pytest.mark.helm

INSTANCE: Final = "app.kubernetes.io/instance"
PARTS: Final = {
    "consumer": {"consumer.enabled": False},
    "serve": {"serve.enabled": False},
    "console": {"console.enabled": False},
    "topics": {"topics.enabled": False},
    "tables": {"tables.enabled": False},
    "pack": {"pack.enabled": False},
    "postgresql": {"console.enabled": False, "postgresql.enabled": False},
}
"""The values that leave out a component."""


def faults(documents: list[Any], overlay: str) -> list[str]:
    """What a cluster would refuse or drop, and names that refer to nothing."""
    secrets = check.secrets_of(comparison.OVERLAYS / overlay)
    found = list(schema_faults(documents, read_schemas(tools.schemas())))
    return found or [*reference_faults(documents, secrets), *hardening_faults(documents)]


def the(documents: list[Any], kind: str, name: str) -> dict[str, Any]:
    """The one object of this kind whose name begins so."""
    (found,) = (
        dict(document) for document in of_kind(documents, kind) if document["metadata"]["name"].startswith(name)
    )
    return found


@pytest.mark.parametrize("name", NAMES)
def test_it_makes_the_objects_of_the_overlay(chart: Chart, name: str) -> None:
    """With the values of an overlay nothing differs but what the module lists."""
    overlay = comparison.objects_of_overlay(build(tools.kustomize(), comparison.OVERLAYS / name))
    assert list(comparison.differences(overlay, comparison.objects_of_chart(chart.rendered(name)))) == []


def test_it_has_the_components_that_no_overlay_has(chart: Chart, tmp_path: Path) -> None:
    """The registry and the collector; peers in the values take the place of the components."""
    shutil.copytree(comparison.OVERLAYS.parent, tmp_path / "kubernetes")
    folder = tmp_path / "kubernetes" / "overlays" / "small"
    file = folder / "kustomization.yaml"
    added = "components:\n  - ../../components/registry\n  - ../../components/tracing\n"
    file.write_text(file.read_text().replace("components:\n", added))
    peers = {
        f"networkPolicy.{name}.to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}]
        for name, namespace in (("registry", "kafka"), ("collector", "monitoring"))
    }
    overlay = comparison.objects_of_overlay(build(tools.kustomize(), folder))
    assert list(comparison.differences(overlay, comparison.objects_of_chart(chart.rendered("small", peers)))) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_namespace_can_be_shared(chart: Chart, name: str) -> None:
    """Every selector of our pods names the release, and policies leave other pods alone."""
    documents = chart.rendered(name, {"networkPolicy.wholeNamespace": False}, release="dupwatch-news")
    for document in documents:
        guard = document["metadata"]["namespace"] != "dupwatch"
        for path, selector in _selectors(document.get("spec", {})):
            theirs = "namespaceSelector" in path or (guard and path == "podSelector") or _foreign(path, selector)
            assert theirs or selector.get("matchLabels", {}).get(INSTANCE) == "dupwatch-news", (document, path)
    others = chart.rendered(name, release="dupwatch-posts")
    assert not comparison.objects_of_chart(documents).keys() & comparison.objects_of_chart(others).keys()


def _foreign(path: str, selector: Mapping[str, Any]) -> bool:
    """Whether a selector is for pods of others: DNS, the gateway, Prometheus."""
    labels = selector.get("matchLabels", {})
    return "podSelector" in path and (
        "k8s-app" in labels
        or labels.get("app.kubernetes.io/component") == "thrift-gateway"
        or labels.get("app.kubernetes.io/name") == "prometheus"
    )


def _selectors(value: object, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, list):
        for inner in value:
            yield from _selectors(inner, path)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key in {"podSelector", "labelSelector", "namespaceSelector"} or (
                key == "selector" and "matchLabels" in inner
            ):
                yield f"{path}.{key}".removeprefix("."), inner
            elif key == "selector":
                yield f"{path}.{key}", {"matchLabels": inner}
            else:
                yield from _selectors(inner, f"{path}.{key}")


@pytest.mark.parametrize(("left_out", "overlay"), [(part, name) for part in PARTS for name in NAMES])
def test_every_part_can_be_left_out(chart: Chart, left_out: str, overlay: str) -> None:
    """The part is gone, and nothing that is left names it."""
    documents = chart.rendered(overlay, PARTS[left_out])
    assert left_out not in {workload.component for workload in workloads(documents)}
    assert faults(documents, overlay) == []


@pytest.mark.parametrize("overlay", NAMES)
def test_groups_of_objects_can_be_left_out(chart: Chart, overlay: str) -> None:
    """Policies, monitors, budgets and the account."""
    kinds = {
        "networkPolicy.enabled": {"NetworkPolicy"},
        "monitoring.enabled": {"ServiceMonitor", "PrometheusRule"},
        "consumer.disruptionBudget.enabled": set(),
        "serviceAccount.create": {"ServiceAccount"},
    }
    for value, gone in kinds.items():
        documents = chart.rendered(overlay, {value: False})
        assert not list(of_kind(documents, *gone))
        usual = ("runs as the account default", "has no default-deny policy")
        assert [fault for fault in faults(documents, overlay) if not any(part in fault for part in usual)] == []


@pytest.mark.parametrize(
    ("release", "start"),
    [
        ("dupwatch", "dupwatch-"),
        ("dupwatch-news", "dupwatch-news-"),
        ("news", "dupwatch-news-"),
        ("1feed", "dupwatch-1feed-"),
        ("feed.example.org", "dupwatch-feed-example-org-"),
        ("a" * 53, "dupwatch-aaaaaaaaaaaaaaaaaaaaaaa-"),
        ("a" * 22 + ".b." + "c" * 28, "dupwatch-aaaaaaaaaaaaaaaaaaaaaa-"),
    ],
)
def test_every_release_has_valid_names(chart: Chart, release: str, start: str) -> None:
    """Names of Services are labels that begin with a letter; those of CronJobs and StatefulSets have 52 characters."""
    documents = chart.rendered("small", release=release, namespace="n" * 63)
    longest = {"CronJob": 52, "StatefulSet": 52, "NetworkPolicy": 253}
    for document in documents:
        kind, name = document["kind"], document["metadata"]["name"]
        if document["metadata"]["namespace"] == "n" * 63 and kind not in {"ServiceAccount", "PrometheusRule"}:
            assert name.startswith(start), name
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name), name
        assert len(name) <= longest.get(kind, 63), name
        labels = document["metadata"]["labels"]
        assert all(
            re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", value) for value in labels.values()
        )
    assert list(schema_faults(documents, read_schemas(tools.schemas()))) == []


def test_long_names_stay_different(chart: Chart) -> None:
    """Two that begin alike are cut, and told apart by their digests."""
    names = {
        the(chart.rendered("small", release="a" * 45 + end), "CronJob", "dupwatch-")["metadata"]["name"]
        for end in ("-one", "-two")
    }
    assert len(names) == 2


def test_the_names_of_the_release_are_in_the_settings(chart: Chart) -> None:
    """Hosts, the address of the database, and peers; Prometheus sees a job that the rules know."""
    documents = chart.rendered("small", {"console.hosts": ["a.example.org"]}, release="news", namespace="feeds")
    settings = tomllib.loads(the(documents, "ConfigMap", "dupwatch-news-config")["data"]["dupwatch.toml"])
    assert settings["console"]["names"] == [
        "a.example.org",
        "dupwatch-news-console",
        "dupwatch-news-console.feeds",
        "dupwatch-news-console.feeds.svc",
        "dupwatch-news-console.feeds.svc.cluster.local",
    ]
    assert "@dupwatch-news-postgresql.feeds.svc:5432/" in settings["console"]["database"]
    (endpoint,) = the(documents, "ServiceMonitor", "dupwatch-news-console")["spec"]["endpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "dupwatch-console-dupwatch-news"}]
    (guard,) = (document for document in documents if document["metadata"]["namespace"] == "hbase")
    assert guard["spec"]["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "feeds"
    }


SETTINGS: Final[Mapping[str, Any]] = {
    "judge": {"window_s": 604800000000, "similarity_min": 0.8125, "facts_shared_min": 0.0000001, "parts": True},
    "kafka": {
        "client": {"client.rack": 'a "b" \\ \n\t <&> {{ .Release.Name }} 词 \u2028 🦊', "log.queue": False, "x": "1"},
        "secret_files": {},
    },
    "rules": {"stock-exchange": {"flag": "never"}, 'a."b" 词': {"never_with": ["", "1", "true"]}},
    "console": {"names": ["yes"], "authority": {"0123": -5}},
    "http": {"open": True, "names": []},
}


def test_settings_arrive_as_they_are_given(chart: Chart) -> None:
    """Numbers, texts that look like them, quotes, line ends and templates, and names with dots."""
    given = {f"config.{name}": value for name, value in SETTINGS.items()}
    documents = chart.rendered("small", given)
    settings = tomllib.loads(the(documents, "ConfigMap", "dupwatch-config")["data"]["dupwatch.toml"])
    for name in ("judge", "kafka", "rules"):
        assert settings[name] == SETTINGS[name]
    assert isinstance(settings["judge"]["window_s"], int)
    assert settings["console"]["authority"] == {"0123": -5}
    assert settings["console"]["names"] == ["yes"]
    assert settings["http"] == {"listen": "0.0.0.0:9464", "open": True, "names": []}


def test_properties_of_hbase_are_xml(chart: Chart) -> None:
    """Numbers and booleans too, and characters that XML has for itself."""
    given = {"hbase.zookeeper.quorum": "a,<b>&\"c'", "hbase.zookeeper.property.clientPort": 16000000, "x.y": True}
    documents = chart.rendered("small", {"hbaseSite": given})
    (site,) = (
        document
        for identity, document in comparison.objects_of_chart(documents).items()
        if identity.name == "dupwatch-hbase-site"
    )
    assert site["data"]["hbase-site.xml"] == {
        "hbase.zookeeper.quorum": "a,<b>&\"c'",
        "hbase.zookeeper.property.clientPort": "16000000",
        "x.y": "true",
    }


def test_a_change_of_settings_is_a_roll_out_and_other_jobs(chart: Chart) -> None:
    """Pods have a digest of the files that they read; a Job, which cannot be changed, another name."""
    before = chart.rendered("production")
    settings = chart.rendered("production", {"config.judge.window_s": 3600})
    site = chart.rendered("production", {"hbaseSite.x": "y"})

    def pods(documents: list[Any], name: str) -> object:
        return the(documents, "Deployment", name)["spec"]["template"]["metadata"]["annotations"]

    for name in ("dupwatch-consumer", "dupwatch-serve", "dupwatch-console"):
        assert pods(before, name) != pods(settings, name)
        assert pods(before, name) == pods(site, name)
    jobs = [{job["metadata"]["name"] for job in of_kind(each, "Job")} for each in (before, settings, site)]
    assert not jobs[0] & jobs[1]
    assert {name.rpartition("-")[0] for name in jobs[0] & jobs[2]} == {"dupwatch-topics"}
    assert before == chart.rendered("production")


def test_pods_get_what_the_values_say(chart: Chart) -> None:
    """What all pods have, what a part overrides, and labels that cannot take ours away."""
    values = {
        "labels": {"team": "news", "app.kubernetes.io/name": "other"},
        "annotations": {"note": "1"},
        "imagePullSecrets": ["pull"],
        "pods.labels": {"tier": "true", "app.kubernetes.io/component": "other"},
        "pods.nodeSelector": {"disk": "0"},
        "pods.tolerations": [{"key": "spot", "operator": "Exists"}],
        "pods.priorityClassName": "high",
        "pods.env": [{"name": "A", "value": "1"}],
        "pods.volumes": [{"name": "cache", "emptyDir": {}}],
        "pods.volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
        "consumer.pod": {"nodeSelector": {"disk": "1"}, "tolerations": [], "affinity": {"nodeAffinity": {}}},
        "consumer.args": ["--set", "workers=3"],
        "serve.pod.sidecars": [{"name": "proxy", "image": "proxy:1"}],
        "serve.service": {"type": "LoadBalancer", "annotations": {"pool": "7"}},
    }
    documents = chart.rendered("production", values)
    assert list(schema_faults(documents, read_schemas(tools.schemas()))) == []
    for document in documents:
        assert document["metadata"]["labels"]["team"] == "news"
        assert document["metadata"]["labels"]["app.kubernetes.io/name"] == "dupwatch"
        assert document["metadata"]["annotations"]["note"] == "1"
    found = {workload.component: workload for workload in workloads(documents)}
    assert set(found) == {"consumer", "serve", "console", "topics", "tables", "pack"}
    for component, workload in found.items():
        assert workload.labels["tier"] == "true"
        assert workload.pod["imagePullSecrets"] == [{"name": "pull"}]
        assert workload.pod["nodeSelector"] == {"disk": "1" if component == "consumer" else "0"}
        assert ("tolerations" in workload.pod) == (component != "consumer")
        for container in workload.containers[: 2 if component == "tables" else 1]:
            assert {"name": "A", "value": "1"} in container["env"]
            assert {"name": "cache", "mountPath": "/cache"} in container["volumeMounts"]
    assert found["consumer"].containers[0]["args"][-2:] == ["--set", "workers=3"]
    assert [container["name"] for container in found["serve"].containers] == ["serve", "proxy"]
    service = the(documents, "Service", "dupwatch-serve")
    assert service["spec"]["type"] == "LoadBalancer"
    assert service["metadata"]["annotations"]["pool"] == "7"


def test_hosts_get_an_ingress(chart: Chart) -> None:
    """With class, certificate and annotations."""
    ingress = {"enabled": True, "className": "nginx", "tlsSecret": "tls", "annotations": {"protocol": "HTTPS"}}
    documents = chart.rendered("production", {"console.ingress": ingress})
    made = the(documents, "Ingress", "dupwatch-console")
    assert faults(documents, "production") == []
    assert made["metadata"]["annotations"] == {"protocol": "HTTPS"}
    assert made["spec"]["ingressClassName"] == "nginx"
    assert made["spec"]["tls"] == [{"secretName": "tls", "hosts": ["console.example.org"]}]
    (rule,) = made["spec"]["rules"]
    assert rule["http"]["paths"][0]["backend"]["service"] == {"name": "dupwatch-console", "port": {"name": "http"}}


def test_names_that_yaml_would_read_as_something_else(chart: Chart) -> None:
    """Numbers, booleans and null stay texts, and so does a number with an exponent."""
    values = {
        "fullnameOverride": "null",
        "serviceAccount.name": "1e3",
        "secrets.database": "0x1f",
        "image.tag": "1.10",
        "pods.priorityClassName": "on",
        "pods.nodeSelector": {"disk": "007"},
        "networkPolicy.guard.namespace": "456",
        "consumer.replicas": 2000000,
        "consumer.disruptionBudget.maxUnavailable": "50%",
        "monitoring.labels": {"release": "true"},
    }
    documents = chart.rendered("small", values, release="no", namespace="123")
    assert list(schema_faults(documents, read_schemas(tools.schemas()))) == []
    assert {document["metadata"]["namespace"] for document in documents} == {"123", "456"}
    consumer = the(documents, "Deployment", "null-consumer")
    assert consumer["spec"]["replicas"] == 2000000
    assert isinstance(consumer["spec"]["replicas"], int)
    assert consumer["spec"]["template"]["spec"]["serviceAccountName"] == "1e3"
    assert the(documents, "PrometheusRule", "null")["metadata"]["labels"]["release"] == "true"


def test_a_trigger_can_be_changed(chart: Chart) -> None:
    """A field that the chart sets too is there once."""
    trigger = {"lagThreshold": "7", "tls": "enable"}
    scaler = the(chart.rendered("production", {"consumer.autoscaling.trigger": trigger}), "ScaledObject", "dupwatch")
    (made,) = scaler["spec"]["triggers"]
    assert made["metadata"]["lagThreshold"] == "7"
    assert made["metadata"]["topic"] == "articles"


def test_runbooks_are_where_the_values_say(chart: Chart) -> None:
    """Every alert links there."""
    ours = "https://git.example.org/docs/"
    groups = the(chart.rendered("small", {"monitoring.rules.runbooks": ours}), "PrometheusRule", "dupwatch")["spec"]
    alerts = [rule for group in groups["groups"] for rule in group["rules"] if "alert" in rule]
    assert alerts
    assert all(alert["annotations"]["runbook_url"].startswith(ours) for alert in alerts)


def test_no_peers_are_nobody(chart: Chart) -> None:
    """An empty list in a policy would be everybody."""
    values: dict[str, Any] = {f"networkPolicy.{name}.from": [] for name in ("prometheus", "clients", "moderators")}
    values |= {f"networkPolicy.{name}.to": [] for name in ("kafka", "dns", "webhooks", "database")}
    for policy in of_kind(chart.rendered("production", values), "NetworkPolicy"):
        for rule in policy["spec"].get("ingress", ()):
            assert rule["from"]
        for rule in policy["spec"].get("egress", ()):
            assert rule["to"]


REFUSED: Final[list[tuple[str, Mapping[str, Any], str]]] = [
    ("small", {"imge.tag": "1"}, "Additional property imge is not allowed"),
    ("small", {"image.tag": 1.1}, "image.tag: Invalid type. Expected: string, given: number"),
    ("small", {"image.repository": ""}, "image.repository is empty: name an image"),
    ("small", {"hbaseImage.repository": ""}, "hbaseImage.repository is empty: name an image"),
    ("small", {"config.judge.reech": 1}, "config.judge: Additional property reech is not allowed"),
    ("small", {"config.workers": "1"}, "config.workers: Invalid type. Expected: integer, given: string"),
    ("small", {"config.judge.plan": 4}, "config.judge.plan: Invalid type. Expected: string, given: integer"),
    ("small", {"config.source.url": ""}, "config.source.url"),
    ("small", {"config.source.url": "-"}, 'config.source.url is "-": write kafka://HOST:PORT/TOPIC'),
    ("small", {"config.store.url": "lmdb:/tmp/store"}, "write hbase://HOST:PORT/NAMESPACE"),
    ("small", {"config.http.open": False}, "config.http has neither user nor open"),
    ("small", {"config.http.listen": "0.0.0.0"}, "config.http.listen: Does not match pattern"),
    ("small", {"config.console.listen": "0.0.0.0"}, "console.listen"),
    ("small", {"hbaseSite": None}, "hbaseSite is required"),
    ("small", {"hbaseSite": {"x": "y"}}, "hbaseSite has no hbase.zookeeper.quorum"),
    ("small", {"consumer": None}, "consumer is required"),
    ("small", {"consumer.replicas": None}, "replicas is required"),
    ("small", {"pods.env": None}, "env is required"),
    ("small", {"secrets.database": ""}, "secrets.database is empty"),
    ("small", {"postgresql.enabled": False}, "config.console.database is missing"),
    ("production", {"postgresql.enabled": True}, "config.console.database is set, and postgresql is enabled"),
    ("small", {"serve.enabled": True}, "config names /run/secrets/tokens, but secrets.tokens is empty"),
    ("small", {"consumer.replicas": "2"}, "consumer.replicas: Invalid type. Expected: integer, given: string"),
    ("small", {"consumer.replicas": -1}, "consumer.replicas: Must be greater than or equal to 0"),
    ("small", {"consumer.disruptionBudget.maxUnavailable": "half"}, "Does not match pattern"),
    ("small", {"pods.labels.tier": True}, "pods.labels.tier: Invalid type. Expected: string, given: boolean"),
    ("small", {"console.ingress.enabled": True}, "console.ingress is enabled, but console.hosts is empty"),
    ("small", {"networkPolicy.kafka.ports": []}, "Array must have at least 1 items"),
    ("small", {"pack.schedule": 17}, "pack.schedule: Invalid type. Expected: string, given: integer"),
    ("production", {"secrets.kafka": ""}, "config names /run/secrets/kafka, but secrets.kafka is empty"),
    ("production", {"secrets.scrape": ""}, "secrets.scrape is empty"),
    ("production", {"config.source.url": "kafka://a:1/x,y"}, "consumer.autoscaling watches one topic"),
    ("production", {"topics.partitions": 6}, "maxReplicas 12 is more than topics.partitions 6"),
    ("production", {"config.kafka.grace_s": 90}, "consumer.terminationGracePeriodSeconds 60 is too short"),
    ("production", {"config.service.drain_s": 20.5}, "serve.terminationGracePeriodSeconds 45 is too short"),
    ("production", {"console.terminationGracePeriodSeconds": 44}, "with config.console.drain_s it may need 45"),
    ("production", {"config.service.listen": "127.0.0.1:8750"}, "where probes cannot reach it: write 0.0.0.0:8750"),
    ("production", {"secrets.http": ""}, "secrets.http is empty"),
    ("production", {"fullnameOverride": "My_Feed"}, "fullnameOverride: Does not match pattern"),
    ("small", {"hbaseImage.tag": ""}, "hbaseImage.tag is empty"),
    ("production", {"consumer.autoscaling.minReplicas": 13}, "minReplicas 13 is more than maxReplicas 12"),
]


@pytest.mark.parametrize(("overlay", "values", "message"), REFUSED, ids=lambda value: json.dumps(value)[:60])
def test_what_could_not_work_is_refused(chart: Chart, overlay: str, values: Mapping[str, Any], message: str) -> None:
    """The message says which value, and what to do."""
    with pytest.raises(NotBuilt) as refused:
        chart.text(overlay, values)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_it_is_clean(chart: Chart, name: str) -> None:
    """Helm's linter agrees, with the values of an overlay and with none."""
    options: list[str | Path] = ["--values", comparison.VALUES / f"{name}.yaml"] if name else []
    linted = chart.lint(*options)
    assert linted.returncode == 0, linted.stdout
    assert "WARN" not in linted.stdout


def test_the_linter_refuses_unknown_values(chart: Chart) -> None:
    """Before anything is installed."""
    linted = chart.lint("--values", comparison.VALUES / "small.yaml", "--set", "consumer.replcas=3")
    assert linted.returncode == 1
    assert "Additional property replcas is not allowed" in linted.stdout


def test_it_can_be_packed(chart: Chart, tmp_path: Path) -> None:
    """The package has the alert rules, and makes the same objects as the folder."""
    packing: list[str | Path] = [*chart.helm, "package", comparison.CHART, "--destination", tmp_path]
    subprocess.run(packing, check=True, stdout=subprocess.PIPE)
    (package,) = tmp_path.iterdir()
    values = comparison.VALUES / "small.yaml"
    command: list[str | Path] = [
        *chart.helm,
        "template",
        "dupwatch",
        package,
        "--namespace",
        "dupwatch",
        "--values",
        values,
    ]
    made = subprocess.run(
        [*command, "--kube-version", comparison.KUBERNETES], check=True, stdout=subprocess.PIPE, text=True
    )
    assert made.stdout == chart.text("small", {})
