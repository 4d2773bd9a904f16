"""What the checks rest on: strict schemas, facts of the program, the alert rules, secrets that are none."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import jsonschema
import pytest
import yaml

from consumer.kafka.time_limits import ENDING_S
from deploy.kubernetes import program, rules
from deploy.kubernetes.check import SECRETS
from deploy.kubernetes.manifests import selects
from deploy.kubernetes.program import PAGES
from deploy.kubernetes.schemas import strict_schema
from deploy.local.ports import HOST, free_ports
from deploy.local.process import wait_until
from tests.cli.command import TIMEOUT_S, start
from tests.deploy.kubernetes.conftest import KUBERNETES, OVERLAYS

_WITHOUT = (
    "import runpy, sys; sys.modules['yaml'] = None; runpy.run_module('deploy.kubernetes.check', None, '__main__')"
)

LOOSE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "many": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "inner": {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": {}}}},
        "free": {"type": "object", "properties": {"c": {}}, "x-kubernetes-preserve-unknown-fields": True},
        "either": {"properties": {"x": {}, "y": {}}, "anyOf": [{"properties": {"x": {"type": "string"}}}]},
    },
}


def test_the_check_says_what_it_needs() -> None:
    """In the environment of ``make run``, which reads no YAML, it ends with one sentence that has the remedy."""
    ran = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("The check needs yaml from the test environment")
    assert ran.stderr.endswith("make .venv/test.stamp\n")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("document", "right"),
    [
        ({"name": "n", "many": [{"a": 1}], "labels": {"any": "x"}, "free": {"d": 1}}, True),
        ({"either": {"x": "s", "y": 1}}, True),
        ({"nme": "n"}, False),
        ({"many": [{"b": 1}]}, False),
        ({"inner": {"any": {"c": 1}}}, False),
        ({"labels": {"any": 1}}, False),
    ],
)
def test_strict_schemas_refuse_what_they_do_not_name(document: object, right: bool) -> None:  # noqa: FBT001
    """Unknown fields fail at every depth, and maps of any name stay open."""
    assert jsonschema.Draft202012Validator(strict_schema(LOOSE)).is_valid(document) == right
    assert jsonschema.Draft202012Validator(LOOSE).is_valid(document) == (right or document != {"labels": {"any": 1}})


def test_labels_are_selected_as_kubernetes_does() -> None:
    """Every condition of a selector has to hold; one without conditions means all."""
    labels = {"a": "1"}
    assert selects({}, labels)
    assert selects({"matchLabels": {"a": "1"}}, labels)
    assert not selects({"matchLabels": {"a": "2"}}, labels)
    wanted = [("a", "In", ["1"], True), ("a", "NotIn", ["1"], False), ("b", "NotIn", ["1"], True),
              ("a", "Exists", [], True), ("b", "Exists", [], False), ("a", "DoesNotExist", [], False)]  # fmt: skip
    for key, operator, values, meant in wanted:
        selector = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
        assert selects(selector, labels) == meant


def test_the_time_to_end_is_that_of_the_program() -> None:
    """The check knows it by heart, since nothing of the program is imported there; and how long preStop sleeps."""
    assert program.ENDING_S == ENDING_S
    for name in ("serve", "console"):
        document = yaml.safe_load((KUBERNETES / "components" / name / f"{name}.yaml").read_text())
        command = document["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
        assert command == ["sleep", f"{program.PRE_STOP_S:g}"]


def test_the_pages_are_there_before_the_brokers_are() -> None:
    """A run answers at every path that a probe or a scraper asks for, also while neither store nor broker is there."""
    (port,) = free_ports(1)
    nowhere = f"{HOST}:1"
    places = ("--source", f"kafka://{nowhere}/articles", "--sink", f"kafka://{nowhere}/dupwatch")
    run = start("run", *places, "--store", f"hbase://{nowhere}/feed", "--set", f"http.listen={HOST}:{port}")
    try:
        assert wait_until(lambda: _status(port, "/healthz") == 200, TIMEOUT_S)
        assert {page: _status(port, page) for page in PAGES} == {"/healthz": 200, "/readyz": 503, "/metrics": 200}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def _status(port: int, page: str) -> int:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}{page}", timeout=TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def test_the_alerts_are_those_of_prometheus() -> None:
    """The manifest has the rules of deploy/prometheus as they are now; python -m deploy.kubernetes.rules writes it."""
    assert rules.MANIFEST.read_text() == rules.manifest(rules.RULES)


def test_alerts_link_to_runbooks_where_they_are_told(tmp_path: Path) -> None:
    """Every one of them, and nothing else is changed."""
    ours = "https://git.example.org/docs/operate/runbooks/"
    theirs = "{{ $externalLabels.runbooks }}docs/operate/runbooks/"
    assert rules.main(["--runbooks", ours, "--to", str(tmp_path / "rules.yaml")]) == 0
    made, usual = (yaml.safe_load(path.read_text()) for path in (tmp_path / "rules.yaml", rules.MANIFEST))
    alerts = [rule for group in usual["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    for alert in alerts:
        assert theirs in alert["annotations"]["runbook_url"]
        alert["annotations"]["runbook_url"] = alert["annotations"]["runbook_url"].replace(theirs, ours)
    assert made == usual


def test_rules_of_all_files_are_taken(tmp_path: Path) -> None:
    """Groups of several files come one after the other, and a file of something else is passed over."""
    (tmp_path / "b.yml").write_text("groups: [{name: b, rules: []}]\n")
    (tmp_path / "a.yaml").write_text("groups: [{name: a, rules: [{alert: A, expr: 'up == 0'}]}]\n")
    (tmp_path / "README.md").write_text("no rules")
    manifest = yaml.safe_load(rules.manifest(tmp_path))
    assert [group["name"] for group in manifest["spec"]["groups"]] == ["a", "b"]
    assert manifest["spec"]["groups"][0]["rules"] == [{"alert": "A", "expr": "up == 0"}]


def test_no_secret_lies_in_the_tree() -> None:
    """What stands for secrets says so, and nothing in an overlay is a Secret with a value."""
    for overlay in OVERLAYS:
        for path in overlay.iterdir():
            documents = list(yaml.safe_load_all(path.read_text())) if path.suffix == ".yaml" else []
            secrets = [
                document for document in documents if isinstance(document, dict) and document["kind"] == "Secret"
            ]
            assert not secrets or path.name == SECRETS
            assert {value for secret in secrets for value in secret["stringData"].values()} <= {"replace-me"}
