"""The store: calls, latency, the cost of judging, conflicts, limits and connectivity."""

from typing import Final

from deploy.grafana.panels import Dashboard, Panel, Query, Row, Step, heatmap, mean, quantiles, stat


def _per_article(counted: str, window: str = "$__rate_interval") -> str:
    return f"sum(rate({counted}{{$of}}[{window}])) / sum(rate(dupwatch_articles_total{{$of}}[{window}]))"


def _distributed(title: str, about: str, name: str, *runbooks: str) -> Panel:
    queries = (Query(mean(name), "mean"), *quantiles(name, shares=(0.99,)))
    return Panel(title=title, about=about, queries=queries, runbooks=runbooks)


_NOW: Final = Row(
    "Now",
    (
        stat(
            "Unreachable",
            "Consumers that cannot reach their store.",
            'sum(dupwatch_unreachable{$of, part="store"})',
            steps=(Step(1, "red"),),
            runbooks=("store#DupwatchStoreUnreachable",),
        ),
        stat("Calls", "Store calls per second.", "sum(rate(dupwatch_store_operations_total{$of}[5m]))", "suffix:/s"),
        stat(
            "Failed calls",
            "In the last five minutes, after all retries.",
            'sum(increase(dupwatch_store_operations_total{$of, outcome!="ok"}[5m]))',
            steps=(Step(1, "orange"),),
            runbooks=("store#DupwatchStoreCallsFailing",),
        ),
        stat(
            "Lost compare-and-sets",
            "Verdicts already written by another consumer, as a share of all articles.",
            _per_article("dupwatch_lost_compare_and_sets_total", "15m"),
            "percentunit",
            steps=(Step(0.01, "orange"),),
            runbooks=("lost-compare-and-sets",),
        ),
        stat(
            "Truncated",
            "Verdicts in the last hour whose search was cut short by a limit.",
            "sum(increase(dupwatch_verdicts_truncated_total{$of}[1h]))",
            steps=(Step(1, "orange"),),
            runbooks=("truncated-verdicts",),
        ),
        stat(
            "Outages",
            "Times in the last day that a consumer lost its store.",
            'sum(increase(dupwatch_outages_total{$of, part="store"}[1d]))',
            steps=(Step(1, "yellow"),),
            runbooks=("connections",),
        ),
    ),
)

_CALLS: Final = Row(
    "Calls",
    (
        Panel(
            title="Calls by operation",
            about="Per second.",
            queries=(
                Query(
                    "sum by (operation) (rate(dupwatch_store_operations_total{$of}[$__rate_interval]))", "{{operation}}"
                ),
            ),
            unit="suffix:/s",
            stacked=True,
            width=12,
        ),
        Panel(
            title="Calls that failed",
            about=(
                "After all retries, by operation and outcome; every outcome except unavailable ends the run. "
                "Repeated: retries within a call, which may have succeeded."
            ),
            queries=(
                Query(
                    "sum by (operation, outcome) "
                    '(increase(dupwatch_store_operations_total{$of, outcome!="ok"}[$__rate_interval]))',
                    "{{operation}}: {{outcome}}",
                ),
                Query(
                    "sum by (operation) (increase(dupwatch_store_repeats_total{$of}[$__rate_interval]))",
                    "{{operation}}: repeated",
                ),
            ),
            width=12,
            runbooks=("store#DupwatchStoreCallsFailing",),
        ),
        Panel(
            title="Latency by operation",
            about="99 % of the calls took less. The line is the threshold of the alert.",
            queries=quantiles("dupwatch_store_operation_seconds", "operation", shares=(0.99,)),
            unit="s",
            steps=(Step(0.5, "orange"),),
            runbooks=("store#DupwatchStoreSlow",),
        ),
        Panel(
            title="Time by operation",
            about="Seconds per second that consumers wait for each operation.",
            queries=(
                Query(
                    "sum by (operation) (rate(dupwatch_store_operation_seconds_sum{$of}[$__rate_interval]))",
                    "{{operation}}",
                ),
            ),
            unit="s",
            stacked=True,
            runbooks=("store#DupwatchStoreSlow",),
        ),
        heatmap("Latency of all calls", "Distribution over all operations.", "dupwatch_store_operation_seconds", "s"),
    ),
)

_COSTS: Final = Row(
    "Cost of judging",
    (
        _distributed(
            "Candidates", "Earlier versions that share a key with an article and may be near it.",
            "dupwatch_article_candidates",
            "truncated-verdicts",
        ),
        _distributed(
            "Suspects", "Candidates that only the sketch can decide.", "dupwatch_article_suspects",
        ),
        _distributed(
            "Verifications", "Records that an article was compared with in one batch of reads.",
            "dupwatch_article_verifications",
            "truncated-verdicts",
        ),
        Panel(
            title="Reads per article",
            about="Posting rows, sketches and records read.",
            queries=(
                Query(_per_article("dupwatch_posting_row_reads_total"), "rows"),
                Query(_per_article("dupwatch_sketch_reads_total"), "sketches"),
                Query(_per_article("dupwatch_record_reads_total"), "records"),
            ),
        ),
        Panel(
            title="Postings per row",
            about="Grows with the window; long rows are slow until the store is packed.",
            queries=(
                Query(
                    "sum(rate(dupwatch_postings_read_total{$of}[$__rate_interval]))"
                    " / sum(rate(dupwatch_posting_row_reads_total{$of}[$__rate_interval]))",
                    "postings",
                ),
            ),
            runbooks=("store#DupwatchStoreSlow",),
        ),
        heatmap("Candidates, distribution", "Distribution over articles.", "dupwatch_article_candidates"),
    ),
)  # fmt: skip

_LIMITS: Final = Row(
    "Conflicts and limits",
    (
        Panel(
            title="Lost compare-and-sets",
            about="Verdicts already written by another consumer, as a share of all articles.",
            queries=(Query(_per_article("dupwatch_lost_compare_and_sets_total"), "lost"),),
            unit="percentunit",
            share=True,
            steps=(Step(0.01, "orange"),),
            runbooks=("lost-compare-and-sets",),
        ),
        Panel(
            title="Repeated verdicts",
            about="Versions that had been judged before: replays, or abandoned batches. Returned: versions whose "
            "content is in force again.",
            queries=(
                Query(_per_article("dupwatch_verdicts_repeated_total"), "repeated"),
                Query(_per_article("dupwatch_articles_returned_total"), "returned"),
            ),
            unit="percentunit",
            share=True,
        ),
        Panel(
            title="Truncated verdicts",
            about="Versions whose search was cut short by a limit.",
            queries=(
                Query("sum(increase(dupwatch_verdicts_truncated_total{$of}[$__rate_interval]))", "truncated"),
                Query("sum(increase(dupwatch_stretches_limited_total{$of}[$__rate_interval]))", "came back too often"),
            ),
            runbooks=("truncated-verdicts",),
        ),
        Panel(
            title="Crowded fingerprints",
            about="Articles that share their fingerprint with thousands of others, and rows too wide to be read whole.",
            queries=(
                Query(_per_article("dupwatch_crowded_articles_total"), "articles"),
                Query(_per_article("dupwatch_crowded_row_reads_total"), "rows per article"),
            ),
            steps=(Step(0.01, "orange"),),
            runbooks=("truncated-verdicts",),
        ),
    ),
)

_REACH: Final = Row(
    "Connectivity",
    (
        Panel(
            title="Reachability",
            about="Whether each consumer reaches its store, its source and its sink.",
            queries=(Query("max by (instance, part) (dupwatch_unreachable{$of})", "{{instance}} {{part}}"),),
            kind="state-timeline",
            steps=(Step(1, "red"),),
            texts=((0, "reachable", "green"), (1, "unreachable", "red")),
            width=12,
            runbooks=("store#DupwatchStoreUnreachable", "brokers"),
        ),
        Panel(
            title="Connections",
            about="To HBase gateways; other stores have none.",
            queries=(
                Query("sum by (what) (increase(dupwatch_store_connections_total{$of}[$__rate_interval]))", "{{what}}"),
            ),
            width=12,
            runbooks=("connections",),
        ),
    ),
)

STORE: Final = Dashboard(
    "store",
    "dupwatch: store",
    "Calls, latency, cost of judging, conflicts, limits, connectivity.",
    (_NOW, _CALLS, _COSTS, _LIMITS, _REACH),
)
