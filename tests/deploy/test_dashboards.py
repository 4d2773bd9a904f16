"""Grafana's dashboards: generated from their code, and valid."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from deploy.grafana.build import DASHBOARDS, main, text_of
from deploy.grafana.layout import COLUMNS
from tests.deploy.promql import OF_PROMETHEUS, metrics_named, metrics_shown
from tests.deploy.watching import GRAFANA, RUNBOOKS, dashboards, panels, queries, records, runbooks

_UNITS = {"short", "s", "bytes", "percentunit", "suffix:/s"}
_PLAIN = {"stat", "table"}


def test_the_files_are_what_the_code_makes() -> None:
    """Otherwise they were edited by hand, or not generated again: python -m deploy.grafana.build."""
    generated = {dashboard.name: text_of(dashboard) for dashboard in DASHBOARDS}
    lying = {path.stem: path.read_text() for path in (GRAFANA / "dashboards").glob("*")}
    assert lying == generated


def test_runbooks_can_be_elsewhere(tmp_path: Path) -> None:
    """The address given stands in the variable that all links begin with."""
    assert main(["--runbooks", "https://example.org/runbooks/", "--to", str(tmp_path)]) == 0
    for dashboard in DASHBOARDS:
        assert '"query": "https://example.org/runbooks/"' in (tmp_path / f"{dashboard.name}.json").read_text()


def test_dashboards_name_metrics_that_a_consumer_has() -> None:
    """What panels and annotations name is a consumer's or Prometheus' own: nothing that was renamed or is gone."""
    known = metrics_shown() | OF_PROMETHEUS | {record["record"] for record in records()}
    for query in queries():
        assert metrics_named(query.expr), query
        assert metrics_named(query.expr) <= known, query
    for dashboard in dashboards().values():
        for annotation in dashboard["annotations"]["list"]:
            assert metrics_named(annotation["expr"]) <= known


def test_every_metric_of_ours_is_shown_somewhere() -> None:
    """Every metric is on a panel; a metric that nobody looks at is not needed."""
    named = {name for query in queries() for name in metrics_named(query.expr)}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in metrics_shown()}
    ours = {name for name in families if name.startswith("dupwatch_")}
    assert ours == {re.sub(r"_(bucket|sum|count)$", "", name) for name in named if name.startswith("dupwatch_")}


def test_panels_choose_by_job_and_consumer() -> None:
    """Every metric in a query is of the chosen jobs and consumers."""
    for query in queries():
        chosen = query.expr.count('{job=~"$job", instance=~"$instance"')
        assert chosen == len(re.findall(r"\b(?:dupwatch_|process_|up\{)", query.expr)), query


def test_panels_say_what_they_show() -> None:
    """A title of its own, a sentence, a unit, and a name for every one of several series."""
    titles = [(name, panel["title"], panel["type"]) for name, panel in panels()]
    assert len(set(titles)) == len(titles)
    for _, panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in _UNITS
        if panel["type"] not in _PLAIN:
            assert all(target["legendFormat"] != "__auto" for target in panel["targets"]), panel["title"]


@pytest.mark.parametrize("name", [dashboard.name for dashboard in DASHBOARDS])
def test_panels_lie_beside_each_other(name: str) -> None:
    """Ids and letters of queries are there once, nothing overlaps, and nothing hangs over the edge."""
    page = dashboards()[name]
    assert [panel["id"] for panel in page["panels"]] == list(range(1, len(page["panels"]) + 1))
    taken: set[tuple[int, int]] = set()
    for panel in page["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS, panel["title"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        letters = [target["refId"] for target in panel.get("targets", [])]
        assert len(set(letters)) == len(letters)


def test_thresholds_rise() -> None:
    """The first colour is for everything, each next one from a higher value on."""
    for _, panel in panels():
        first, *more = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert first["value"] is None
        assert all(step["value"] < next_["value"] for step, next_ in pairwise(more)), panel["title"]


def test_links_lead_to_runbooks_that_are_there() -> None:
    """Panels link to pages or sections of ours, below the address that an operator gives, and to every page."""
    linked = {link["url"].removeprefix("${runbooks}") for _, panel in panels() for link in panel["links"]}
    addresses = {found.address for path in RUNBOOKS.glob("*.md") for found in runbooks(path)}
    assert linked <= addresses | {address.partition("#")[0] for address in addresses}
    assert {address.partition("#")[0] for address in linked} == {path.name for path in RUNBOOKS.glob("*.md")}


def test_what_grafana_is_provisioned_with_fits_the_dashboards() -> None:
    """A Prometheus that is the default, and the folder where compose mounts the dashboards."""
    sources = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())
    (source,) = sources["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    scraped = yaml.safe_load((GRAFANA.parent / "prometheus/prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == scraped["global"]["scrape_interval"]
    providers = yaml.safe_load((GRAFANA / "provisioning/dashboards/dupwatch.yml").read_text())
    (provider,) = providers["providers"]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
