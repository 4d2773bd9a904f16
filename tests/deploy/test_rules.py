"""The alert rules, checked by promtool: valid, and each shown firing and not firing."""

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from tests.deploy.promql import OF_PROMETHEUS, metrics_named, metrics_shown
from tests.deploy.tools import program
from tests.deploy.watching import PROMETHEUS, RULE_TESTS, RULES, alerts, groups, records
from tests.examples import drawn

_SEVERITIES = {"critical", "warning", "info"}


def promtool(*arguments: str | Path) -> str:
    """What it says; the test fails where it finds something wrong."""
    command = [program("promtool"), *map(str, arguments)]
    # Collecting garbage less often saves a fifth of its time.
    rarely = os.environ | {"GOGC": "400"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=rarely)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.servers
def test_configuration_and_rules_are_valid(tmp_path: Path) -> None:
    """Promtool accepts them, including their style, where the secret is that it names."""
    secret, config = tmp_path / "prometheus.secret", tmp_path / "prometheus.yml"
    secret.touch()
    text = (PROMETHEUS / "prometheus.yml").read_text()
    for named, here in (("/run/dupwatch/prometheus.secret", secret), ("rules/*.yml", PROMETHEUS / "rules" / "*.yml")):
        assert named in text
        text = text.replace(named, str(here))
    config.write_text(text)
    assert "1 rule files found" in promtool("check", "config", config)
    promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)


@pytest.mark.servers
@pytest.mark.parametrize("file", drawn(sorted(RULE_TESTS.glob("*.yml")), 3), ids=lambda path: path.stem)
def test_alerts_fire_when_they_should_and_only_then(file: Path) -> None:
    """The test cases beside the rules pass."""
    promtool("test", "rules", file)


def test_every_alert_is_shown_firing_and_not_firing() -> None:
    """Each alert has cases of both, so that none fires always or never."""
    seen: defaultdict[str, set[bool]] = defaultdict(set)
    for file in RULE_TESTS.glob("*.yml"):
        for case in yaml.safe_load(file.read_text())["tests"]:
            for test in case.get("promql_expr_test", []):
                (name,) = re.findall(r'alertname="(\w+)"', test["expr"])
                seen[name].add(bool(test.get("exp_samples")))
    assert seen == {alert["alert"]: {False, True} for alert in alerts()}


def test_every_alert_says_what_it_is_and_what_to_do_first() -> None:
    """A name of ours, a severity, a summary, a first step, and a runbook behind an address that can be given."""
    for alert in alerts():
        name, texts = alert["alert"], alert["annotations"]
        assert re.fullmatch(r"Dupwatch([A-Z][a-z]+)+", name)
        assert alert["labels"].keys() == {"severity"}
        assert alert["labels"]["severity"] in _SEVERITIES
        assert texts.keys() == {"summary", "description", "runbook_url"}
        assert re.search(r"\bfirst\b", texts["description"].lower()), name
        assert texts["description"].endswith("."), name
        assert texts["runbook_url"].startswith("{{ $externalLabels.runbooks }}docs/operate/runbooks/"), name


def test_rules_name_metrics_that_a_consumer_has() -> None:
    """Whatever a rule names is a consumer's, Prometheus' own, or recorded by another rule."""
    recorded = {record["record"] for record in records()}
    known = metrics_shown() | OF_PROMETHEUS | recorded
    for group in groups():
        for rule in group["rules"]:
            assert metrics_named(rule["expr"]) <= known, rule
    used = {name for group in groups() for rule in group["rules"] for name in metrics_named(rule["expr"])}
    assert recorded <= used, "something is recorded that no alert uses"
