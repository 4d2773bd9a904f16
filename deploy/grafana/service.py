"""The HTTP service: requests, their duration, limits, and what checks answer."""

from typing import Final

from deploy.grafana.panels import Dashboard, Panel, Query, Row, Step, quantiles, stat

_ALL: Final = "sum(rate(dupwatch_requests_total{$of}[5m]))"
_FAILED: Final = 'sum(rate(dupwatch_requests_total{$of, status=~"5.."}[5m]))'

_NOW: Final = Row(
    "Now",
    (
        stat("Requests", "Answered per second.", _ALL, "suffix:/s"),
        stat(
            "Refused or failed",
            "Share of the requests with a status of 500 or more.",
            f"{_FAILED} / ({_ALL} > 0)",
            "percentunit",
            steps=(Step(0.01, "orange"),),
            runbooks=("requests-failing",),
        ),
        stat("Requests in flight", "Not answered yet.", "sum(dupwatch_requests_in_flight{$of})"),
        stat("Open connections", "Of clients.", "sum(dupwatch_connections{$of})"),
    ),
)

_REQUESTS: Final = Row(
    "Requests",
    (
        Panel(
            title="Requests by status",
            about="Per second, by method and status.",
            queries=(
                Query(
                    "sum by (method, status) (rate(dupwatch_requests_total{$of}[$__rate_interval])) > 0",
                    "{{method}} {{status}}",
                ),
            ),
            unit="suffix:/s",
            stacked=True,
            runbooks=("requests-failing",),
        ),
        Panel(
            title="Duration of requests",
            about="From the head of a request to the end of its answer, by route.",
            queries=quantiles("dupwatch_request_seconds", "route"),
            unit="s",
        ),
        Panel(
            title="Limits met",
            about="Requests, articles and connections that met a limit, per second, by its name.",
            queries=(
                Query("sum by (limit) (rate(dupwatch_limits_met_total{$of}[$__rate_interval])) > 0", "{{limit}}"),
            ),
            unit="suffix:/s",
            runbooks=("requests-failing",),
        ),
        Panel(
            title="Texts checked",
            about="Per second, by what was answered.",
            queries=(
                Query("sum by (outcome) (rate(dupwatch_texts_checked_total{$of}[$__rate_interval]))", "{{outcome}}"),
            ),
            unit="suffix:/s",
            stacked=True,
        ),
    ),
)

SERVICE: Final = Dashboard(
    "service",
    "dupwatch: HTTP service",
    "Requests, their duration, limits, and what checks answer.",
    (_NOW, _REQUESTS),
    listed_by="dupwatch_requests_in_flight",
)
