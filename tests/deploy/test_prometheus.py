"""A real Prometheus scrapes a real consumer: every panel and every alert has data."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import FAST, text
from tests.cli.serve.service import Process, serving
from tests.console.consoles import Running, consoling, sqlite_place
from tests.deploy.prometheus import REPOSITORY_URL, Prometheus, prometheus
from tests.deploy.promql import chosen, metrics_shown, selectors, without_thresholds
from tests.deploy.watching import alerts, dashboards, queries, records
from tests.kafka.running import running
from tests.kafka.topics import make_topics, send, wait_for_count

pytestmark = pytest.mark.servers

_LEGEND = re.compile(r"\{\{(\w+)\}\}")
_COPIES = 130
"""More than the hundred that a flood begins with."""


def feed() -> list[tuple[str | None, object]]:
    """Something of everything: two sources and none, near ones, a flood, a repeat, a retraction, bad records."""
    plain = [(f"a{n}", {"body": text(n), "title": "A title", "source": f"wire {n % 2}"}) for n in range(40)]
    near = [(f"n{n}", {"body": text(n, 200) + f" only here {n}", "source": "wire 0"}) for n in range(5)]
    whole = [(f"w{n}", {"body": text(n, 200), "source": "wire 1"}) for n in range(5)]
    flood = [(f"f{n}", {"body": text(1000)}) for n in range(_COPIES)]
    empty: list[tuple[str | None, object]] = [("empty", {"body": " "}), ("a1", None)]
    bad: list[tuple[str | None, object]] = [("bad", b"{"), (None, {"body": "x"}), ("one", {"id": "other", "body": "x"})]
    return [*plain, *whole, *near, *flood, plain[3], *empty, *bad]


def test_a_real_prometheus_has_data_for_every_panel_and_alert(kafka_address: str, tmp_path: Path) -> None:
    """From a consumer, a service and a console, with a feed of something of everything, and started once."""
    topics = make_topics(kafka_address)
    # A flood is seen where its copies come in more than one batch, and pages where bodies are pages.
    few = ("--set", "source.batch_records_max=64", "--set", "source.body_format=article", *FAST)
    store = f"lmdb:{tmp_path / 'store'}"
    with (
        running(topics, store, tmp_path, *few) as consumer,
        serving(store, tmp_path, "--sink", str(tmp_path / "posted.jsonl"), *few) as service,
        consoling(topics, store, sqlite_place(tmp_path), tmp_path) as console,
        prometheus(
            tmp_path / "prometheus",
            f"127.0.0.1:{consumer.port}",
            *(each.url.removeprefix("http://") for each in (service, console)),
        ) as server,
    ):
        consumer.wait_ready()
        service.wait_ready()
        console.wait_ready()
        # A rate is between two looks: the first has to come before the feed.
        server.wait(lambda: server.query("count(up == 1) == 3"))
        count = send(topics, feed())
        ask(service)
        wait_for_count(topics, ("verdicts", "dead-letters"), count)
        check_names(server, lambda: consumer.page("/metrics")[1] + scraped(service) + scraped(console))
        check_panels(server)
        check_annotations(server)
        check_alerts(server)
        check_rules(server)


def scraped(served: Process | Running) -> str:
    """The metrics of a service or a console."""
    return served.get("/metrics").data.decode()


def wait_for_data(server: Prometheus, exprs: dict[str, str]) -> None:
    """Return when each of these, by name, is something; fail with those that never are."""
    left = dict(exprs)

    def all_there() -> bool:
        for name, expr in list(left.items()):
            if server.query(expr):
                del left[name]
        return not left

    server.wait(
        all_there, lambda: "\n".join(["nothing comes of:", *(f"{name}: {expr}" for name, expr in left.items())])
    )


def check_panels(server: Prometheus) -> None:
    """Each query is valid and has numbers, and its series have the labels that they are called by."""
    asked = queries()
    # Nothing is served over HTTPS here and no token refused, so that nothing of it is above 0.
    exprs = [chosen(query.expr).replace(" > 0", " > bool 0") for query in asked]
    wait_for_data(
        server, {f"{query.name} {number}": expr for number, (query, expr) in enumerate(zip(asked, exprs, strict=True))}
    )
    for query in asked:
        labels = set(_LEGEND.findall(query.legend))
        for series in server.query(chosen(query.expr)):
            assert labels <= series["metric"].keys(), query


def check_annotations(server: Prometheus) -> None:
    """Alerts that fire are drawn into all pictures, and here one does: for the dead letters."""
    for name, dashboard in dashboards().items():
        for annotation in dashboard["annotations"]["list"]:
            wait_for_data(server, {name: chosen(annotation["expr"])})


def check_alerts(server: Prometheus) -> None:
    """Without its thresholds each alternative of an alert has data, and so has every single selector in it."""
    exprs = {
        f"{alert['alert']} {number}": expr
        for alert in alerts()
        for number, expr in enumerate(without_thresholds(alert["expr"]))
    }
    chosen_series = {selector: selector for alert in alerts() for selector in selectors(alert["expr"])}
    wait_for_data(server, exprs | chosen_series | {record["record"]: record["record"] for record in records()})


def check_rules(server: Prometheus) -> None:
    """Prometheus has evaluated each, and the alert for dead letters fires with what it says filled in."""
    server.wait(lambda: all(rule["health"] != "unknown" for rule in server.rules()))
    rules = {rule["name"]: rule for rule in server.rules()}
    assert rules.keys() == {alert["alert"] for alert in alerts()} | {record["record"] for record in records()}
    assert [rule for rule in rules.values() if rule["health"] != "ok"] == []
    server.wait(lambda: {rule["name"]: rule for rule in server.rules()}["DupwatchDeadLetters"]["state"] == "firing")
    firing = {rule["name"]: rule for rule in server.rules()}["DupwatchDeadLetters"]["alerts"]
    assert {alert["labels"]["reason"] for alert in firing} == {"invalid_json", "missing_key", "key_contradicts_id"}
    runbook = f"{REPOSITORY_URL}docs/operate/runbooks/dead-letters.md"
    assert all(alert["annotations"]["runbook_url"] == runbook for alert in firing)


def ask(service: Process) -> None:
    """Something of everything: articles that are answered, one that is unknown, and a request beyond a limit."""
    assert service.check({"body": text(0)}).status == 200
    assert service.store({"id": "posted", "body": text(0)}).status == 200
    assert service.get("/v1/articles/unknown").status == 404
    assert service.check(*[{"body": "x"}] * 1_001).status == 422


def check_names(server: Prometheus, pages: Callable[[], str]) -> None:
    """What the classes are said to have is what the pages have: all other tests of names go by the classes."""
    names = metrics_shown()
    ours = {name for name in names if name.startswith("dupwatch_")}

    def shown() -> set[str]:
        lines = pages().splitlines()
        return {re.split(r"[ {]", line)[0] for line in lines if line and not line.startswith("#")}

    # The lag is told some seconds after the partitions came.
    server.wait(lambda: ours <= shown(), lambda: ours - shown())
    assert {name for name in shown() if not name.endswith("_created")} <= names
