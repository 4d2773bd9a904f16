"""Dashboards as Grafana's JSON (schema 39: Grafana 11 and 12)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from deploy.grafana.panels import Dashboard, Panel, Row, Step

RUNBOOKS: Final = "docs/operate/runbooks/"
COLUMNS: Final = 24
_SCHEMA: Final = 39
_PLUGIN: Final = "11.0.0"
_TAG: Final = "dupwatch"
_OF: Final = 'job=~"$job", instance=~"$instance"'
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_ALERTS: Final = 'ALERTS{alertname=~"Dupwatch.+", alertstate="firing", job=~"$job|"}'


def dashboard_json(dashboard: Dashboard, runbooks: str = RUNBOOKS) -> dict[str, Any]:
    """Return the JSON of a dashboard. Links to runbooks begin with ``runbooks``."""
    return {
        "uid": f"{_TAG}-{dashboard.name}",
        "title": dashboard.title,
        "description": dashboard.about,
        "tags": [_TAG],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": _variables(runbooks, dashboard.listed_by)},
        "annotations": {"list": [_alerts()]},
        "links": [
            {"type": "dashboards", "title": "dupwatch", "tags": [_TAG], "keepTime": True, "includeVars": True,
             "asDropdown": False, "targetBlank": False, "icon": "external link", "tooltip": "", "url": ""},
        ],
        "panels": [{"id": number, **panel} for number, panel in enumerate(_placed(dashboard.rows), 1)],
    }  # fmt: skip


def _placed(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield headings and panels with their positions.

    A heading takes one grid line, and a line of panels as many as its tallest panel.
    """
    top = 0
    for row in rows:
        yield {
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": _place(0, top, COLUMNS, 1),
        }
        top += 1
        for line in _lines(row.panels):
            left = 0
            for panel in line:
                yield _panel(panel) | {"gridPos": _place(left, top, panel.width, panel.height)}
                left += panel.width
            top += max(panel.height for panel in line)


def _lines(panels: Iterable[Panel]) -> Iterator[list[Panel]]:
    line: list[Panel] = []
    for panel in panels:
        if sum(placed.width for placed in line) + panel.width > COLUMNS:
            yield line
            line = []
        line.append(panel)
    if line:
        yield line


def _place(left: int, top: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "pluginVersion": _PLUGIN,
        "targets": [_target(panel, number) for number in range(len(panel.queries))],
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "options": _options(panel),
        "transformations": _transformations(panel),
        "links": [_runbook_link(name) for name in panel.runbooks],
    }


def _runbook_link(name: str) -> dict[str, Any]:
    """Return a link to a page of the runbooks, or to the section of an alert in it (``page#Alert``)."""
    page, mark, alert = name.partition("#")
    url = f"${{runbooks}}{page}.md{mark}{alert.lower()}"
    return {"title": f"Runbook: {alert or page}", "url": url, "targetBlank": True}


def _target(panel: Panel, number: int) -> dict[str, Any]:
    query = panel.queries[number]
    now = panel.kind in {"stat", "table"}
    return {
        "refId": chr(ord("A") + number),
        "datasource": _SOURCE,
        "expr": query.expr.replace("$of", _OF),
        "legendFormat": query.legend or "__auto",
        "editorMode": "code",
        "range": not now,
        "instant": now,
        "format": {"heatmap": "heatmap", "table": "table"}.get(panel.kind, "time_series"),
    }


def _field(panel: Panel) -> dict[str, Any]:
    field: dict[str, Any] = {
        "unit": panel.unit,
        "thresholds": _thresholds(panel.steps),
        "mappings": [
            {"type": "value", "options": {f"{value:g}": {"text": text, "color": colour, "index": number}}}
            for number, (value, text, colour) in enumerate(panel.texts)
        ],
    }
    if panel.kind == "timeseries":
        field |= {"min": 0, "color": {"mode": "palette-classic"}, "custom": _line_style(panel)}
        field |= {"max": 1} if panel.share else {}
    elif panel.kind in {"stat", "state-timeline"}:
        field |= {"color": {"mode": "thresholds"}}
    return field


def _line_style(panel: Panel) -> dict[str, Any]:
    return {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 30 if panel.stacked else 8,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if panel.steps else "off"},
    }


def _thresholds(steps: Sequence[Step]) -> dict[str, Any]:
    base = {"color": "green", "value": None}
    return {"mode": "absolute", "steps": [base, *({"color": step.colour, "value": step.value} for step in steps)]}


def _options(panel: Panel) -> dict[str, Any]:
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if panel.kind == "stat":
        return {"reduceOptions": reduced, "colorMode": "value" if panel.steps else "none", "graphMode": "none",
                "textMode": "auto", "justifyMode": "auto", "orientation": "auto"}  # fmt: skip
    if panel.kind == "heatmap":
        return {
            "calculate": False,
            "yAxis": {"unit": panel.unit, "axisPlacement": "left"},
            "color": {"mode": "scheme", "scheme": "Blues", "steps": 64, "exponent": 0.5, "fill": "blue"},
            "rowsFrame": {"layout": "auto"},
            "cellGap": 1,
            "filterValues": {"le": 1e-9},
            "tooltip": {"mode": "single", "yHistogram": True},
            "legend": {"show": True},
        }
    if panel.kind == "table":
        return {"showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"], "fields": ""}}
    if panel.kind == "state-timeline":
        return {"showValue": "never", "mergeValues": True, "rowHeight": 0.8, "legend": _legend("list", ()),
                "tooltip": {"mode": "single", "sort": "none"}}  # fmt: skip
    return {"legend": _legend("table", ("mean", "lastNotNull")), "tooltip": {"mode": "multi", "sort": "desc"}}


def _legend(mode: str, calculated: Sequence[str]) -> dict[str, Any]:
    return {"showLegend": True, "displayMode": mode, "placement": "bottom", "calcs": [*calculated]}


def _transformations(panel: Panel) -> list[dict[str, Any]]:
    if panel.kind != "table":
        return []
    unwanted = {name: True for name in ("Time", "__name__", "Value") if len(panel.queries) == 1}
    named = {f"Value #{chr(ord('A') + number)}": query.legend for number, query in enumerate(panel.queries)}
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": unwanted or {"Time": True}, "renameByName": named}},
    ]


def _variables(runbooks: str, listed_by: str) -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0,
         "current": {}, "refresh": 1, "regex": "", "multi": False, "includeAll": False, "options": []},
        _labels("job", "Job", f"label_values({listed_by}, job)"),
        _labels("instance", "Instance", f'label_values({listed_by}{{job=~"$job"}}, instance)'),
        {"name": "runbooks", "label": "Runbooks at", "type": "textbox", "query": runbooks, "hide": 0,
         "current": {"text": runbooks, "value": runbooks}, "options": []},
    ]  # fmt: skip


def _labels(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name, "qryType": 1},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "options": [],
    }


def _alerts() -> dict[str, Any]:
    return {
        "name": "Firing alerts",
        "datasource": _SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": "red",
        "expr": _ALERTS,
        "titleFormat": "{{alertname}}",
        "textFormat": "{{instance}} {{part}}",
        "step": "60s",
    }
