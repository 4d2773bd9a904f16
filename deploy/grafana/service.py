"""The HTTP service: requests, their duration, limits, results of checks, access, and articles to store."""

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
        stat("Open connections", "Connections of clients.", "sum(dupwatch_connections{$of})"),
    ),
)

_REQUESTS: Final = Row(
    "Requests",
    (
        Panel(
            title="Requests by status",
            about="Requests per second, by method and status.",
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
            about="Requests, articles and connections that met a limit, per second, by limit.",
            queries=(
                Query("sum by (limit) (rate(dupwatch_limits_met_total{$of}[$__rate_interval])) > 0", "{{limit}}"),
            ),
            unit="suffix:/s",
            runbooks=("requests-failing",),
        ),
        Panel(
            title="Texts checked",
            about="Texts checked per second, by answer.",
            queries=(
                Query("sum by (outcome) (rate(dupwatch_texts_checked_total{$of}[$__rate_interval]))", "{{outcome}}"),
            ),
            unit="suffix:/s",
            stacked=True,
        ),
    ),
)

_ACCESS: Final = Row(
    "Access",
    (
        Panel(
            title="Refused secrets",
            about="Requests whose secret was refused, by reason; the log has the names of tokens.",
            queries=(
                Query(
                    "sum by (reason) (increase(dupwatch_secrets_refused_total{$of}[$__rate_interval])) > 0",
                    "{{reason}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            title="Tokens",
            about="Tokens in the file when it was last read, and attempts to read a file that cannot be used.",
            queries=(
                Query("max by (instance) (dupwatch_tokens{$of})", "{{instance}}"),
                Query(
                    "sum by (instance) (increase(dupwatch_token_file_failures_total{$of}[$__rate_interval])) > 0",
                    "{{instance}}: failures",
                ),
            ),
            runbooks=("token-file-unreadable",),
        ),
        Panel(
            title="Audit log",
            about="Lines that were appended, and lines that could not be appended.",
            queries=(
                Query("sum(increase(dupwatch_changes_recorded_total{$of}[$__rate_interval]))", "recorded"),
                Query("sum(increase(dupwatch_changes_unrecorded_total{$of}[$__rate_interval]))", "not recorded"),
            ),
        ),
        Panel(
            title="Certificate",
            about="How long the certificate of the service is still valid. The line is the threshold of the alert.",
            queries=(Query("(dupwatch_certificate_expiry_timestamp_seconds{$of} > 0) - time()", "{{instance}}"),),
            unit="s",
            steps=(Step(0, "red"), Step(7 * 86_400, "green")),
            runbooks=("certificate-expires",),
        ),
    ),
)
_STORING: Final = Row(
    "Articles to store",
    (
        Panel(
            title="Articles that wait",
            about="Articles and retractions that are not answered yet: at most service.inbox_records_max.",
            queries=(Query("sum by (instance) (dupwatch_inbox_records{$of})", "{{instance}}"),),
            runbooks=("requests-failing",),
        ),
        Panel(
            title="Bytes that wait",
            about="Bytes of these articles and retractions: at most service.inbox_bytes_max.",
            queries=(Query("sum by (instance) (dupwatch_inbox_bytes{$of})", "{{instance}}"),),
            unit="bytes",
        ),
        Panel(
            title="Time until the sink has the verdicts",
            about="From the moment when the articles of a request are gathered.",
            queries=quantiles("dupwatch_inbox_seconds"),
            unit="s",
        ),
    ),
)

SERVICE: Final = Dashboard(
    "service",
    "dupwatch: HTTP service",
    "Requests, their duration, limits, what checks answer, who is let in, and articles to store.",
    (_NOW, _REQUESTS, _ACCESS, _STORING),
    listed_by="dupwatch_requests_in_flight",
)
