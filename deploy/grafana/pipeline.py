"""How well articles come through: throughput, latency, lag, where the time goes, and what goes wrong."""

from typing import Final

from deploy.grafana.panels import Dashboard, Panel, Query, Row, Step, heatmap, quantiles, stat

_ANSWERED: Final = "(sum(rate(dupwatch_articles_total{$of}[5m])) + sum(rate(dupwatch_dead_letters_total{$of}[5m])))"

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Consumers",
            "Those that answer.",
            "sum(up{$of})",
            steps=(Step(0, "red"), Step(1, "green")),
            runbooks=("down", "instance-down"),
        ),
        stat(
            "Out of reach",
            "Sources, sinks and stores that consumers cannot reach.",
            "sum(dupwatch_unreachable{$of})",
            steps=(Step(1, "red"),),
            runbooks=("store-unreachable", "source-unreachable", "sink-unreachable"),
        ),
        stat("Throughput", "Articles and dead letters a second.", _ANSWERED, "suffix:/s"),
        stat(
            "Lag",
            "Records that are there and not committed.",
            "sum(dupwatch_lag_records{$of})",
            steps=(Step(1000, "orange"),),
            runbooks=("lag-growing", "nothing-processed"),
        ),
        stat(
            "Lag in time",
            "How long what waits takes at the rate of the last minutes.",
            f"sum(dupwatch_lag_records{{$of}}) / ({_ANSWERED} > 0)",
            "s",
            steps=(Step(600, "orange"),),
            runbooks=("lag-old",),
        ),
        stat(
            "Latency, p99",
            "From a record's time to its verdict.",
            "histogram_quantile(0.99, sum by (le) (rate(dupwatch_end_to_end_seconds_bucket{$of}[5m])))",
            "s",
            steps=(Step(1, "orange"),),
            runbooks=("latency-high",),
        ),
    ),
)

_THROUGH: Final = Row(
    "Throughput and lag",
    (
        Panel(
            title="Articles by consumer",
            about="Answered a second.",
            queries=(
                Query("sum by (instance) (rate(dupwatch_articles_total{$of}[$__rate_interval]))", "{{instance}}"),
            ),
            unit="suffix:/s",
            stacked=True,
            runbooks=("nothing-processed",),
        ),
        Panel(
            title="Lag per partition",
            about="Records that are there and not committed. One that grows alone: a hot key, or its consumer hangs.",
            queries=(Query("sum by (topic, partition) (dupwatch_lag_records{$of})", "{{topic}} {{partition}}"),),
            stacked=True,
            runbooks=("lag-growing", "lag-old", "nothing-processed"),
        ),
        Panel(
            title="Partitions per consumer",
            about="None beside others that have some is a spare.",
            queries=(Query("sum by (instance) (dupwatch_assigned_partitions{$of})", "{{instance}}"),),
            runbooks=("nothing-assigned",),
        ),
    ),
)

_LATENCY: Final = Row(
    "Latency",
    (
        Panel(
            title="End to end",
            about="From a record's time to its verdict being written and committed. The line is the aim.",
            queries=quantiles("dupwatch_end_to_end_seconds"),
            unit="s",
            steps=(Step(1, "orange"),),
            width=12,
            runbooks=("latency-high",),
        ),
        Panel(
            title="Since the last batch",
            about="How long ago each consumer committed one; a quiet feed lets it rise.",
            queries=(
                Query(
                    "time() - (dupwatch_last_processed_timestamp_seconds{$of} > 0)",
                    "{{instance}}",
                ),
            ),
            unit="s",
            width=12,
            runbooks=("nothing-processed",),
        ),
        heatmap("End to end, all", "How latency is distributed.", "dupwatch_end_to_end_seconds", "s"),
        Panel(
            title="Heartbeat of the loops",
            about="How long ago a loop turned; the main one rests while nothing comes.",
            queries=(
                Query(
                    "time() - (dupwatch_loop_heartbeat_timestamp_seconds{$of} > 0)",
                    "{{instance}} {{thread}}",
                ),
            ),
            unit="s",
            steps=(Step(60, "red"),),
            runbooks=("loop-stuck",),
        ),
        Panel(
            title="Busy",
            about="Share of the scrapes at which a batch was worked on.",
            queries=(Query("avg by (instance) (avg_over_time(dupwatch_busy{$of}[$__rate_interval]))", "{{instance}}"),),
            unit="percentunit",
            share=True,
            runbooks=("loop-stuck",),
        ),
    ),
)

_STAGES: Final = Row(
    "Where the time goes",
    (
        Panel(
            title="Time per stage",
            about="Seconds a second, of all consumers; poll waits for records, workers make fingerprints beside.",
            queries=(Query("sum by (stage) (rate(dupwatch_stage_seconds_sum{$of}[$__rate_interval]))", "{{stage}}"),),
            unit="s",
            stacked=True,
            width=12,
            runbooks=("lag-growing", "latency-high"),
        ),
        Panel(
            title="A batch, per stage",
            about="99 of 100 batches took less.",
            queries=quantiles("dupwatch_stage_seconds", "stage", shares=(0.99,)),
            unit="s",
            width=12,
            runbooks=("latency-high",),
        ),
        heatmap("Records of a batch", "Small when it is quiet, full when it is not.", "dupwatch_batch_records"),
        Panel(
            title="Batch fill and size",
            about="How full a batch was; always full means that the consumer is behind.",
            queries=quantiles("dupwatch_batch_fill_ratio"),
            unit="percentunit",
            share=True,
        ),
        Panel(
            title="Bytes of a batch",
            about="Size of its records.",
            queries=quantiles("dupwatch_batch_bytes"),
            unit="bytes",
        ),
        Panel(
            title="Back-pressure",
            about="Share of the time in which nothing was fetched, since what was fetched had not been judged.",
            queries=(
                Query(
                    "sum by (instance) "
                    '(rate(dupwatch_stage_seconds_sum{$of, stage="back_pressure"}[$__rate_interval]))',
                    "{{instance}}: held back",
                ),
                Query(
                    "avg by (instance) (avg_over_time(dupwatch_paused{$of}[$__rate_interval]))", "{{instance}}: paused"
                ),
            ),
            unit="percentunit",
            width=12,
            runbooks=("lag-growing",),
        ),
        Panel(
            title="Use of the workers",
            about="How busy one process that makes fingerprints is; without workers it is the judge's own.",
            queries=(
                Query(
                    'sum by (instance) (rate(dupwatch_stage_seconds_sum{$of, stage="fingerprint"}[$__rate_interval]))'
                    " / sum by (instance) (clamp_min(dupwatch_workers{$of}, 1))",
                    "{{instance}}",
                ),
            ),
            unit="percentunit",
            width=12,
            runbooks=("lag-growing",),
        ),
    ),
)

_WRONG: Final = Row(
    "What goes wrong",
    (
        Panel(
            title="Dead letters",
            about="Records that could not be judged, by reason.",
            queries=(
                Query(
                    "sum by (reason) (increase(dupwatch_dead_letters_total{$of}[$__rate_interval])) > 0", "{{reason}}"
                ),
            ),
            stacked=True,
            runbooks=("dead-letters", "dead-letter-share", "poison-near-limit"),
        ),
        Panel(
            title="Held partitions",
            about="Partitions that wait until a person lets them go on: too many of their records cannot be judged.",
            queries=(Query("max by (topic, partition) (dupwatch_partition_held{$of})", "{{topic}} {{partition}}"),),
            stacked=True,
            steps=(Step(1, "red"),),
            runbooks=("partition-held",),
        ),
        Panel(
            title="Errors",
            about="What went wrong without ending the run.",
            queries=(Query("sum by (type) (increase(dupwatch_errors_total{$of}[$__rate_interval]))", "{{type}}"),),
            runbooks=("errors",),
        ),
        Panel(
            title="Outages",
            about="Times that a part went out of reach, and was within reach again.",
            queries=(
                Query("sum by (part) (increase(dupwatch_outages_total{$of}[$__rate_interval]))", "{{part}} lost"),
                Query("sum by (part) (increase(dupwatch_recoveries_total{$of}[$__rate_interval]))", "{{part}} back"),
            ),
            runbooks=("outages-repeated", "store-unreachable", "source-unreachable", "sink-unreachable"),
        ),
        Panel(
            title="Rebalances",
            about="Times that partitions came or went.",
            queries=(Query("sum by (what) (increase(dupwatch_rebalances_total{$of}[$__rate_interval]))", "{{what}}"),),
            runbooks=("rebalancing",),
        ),
        Panel(
            title="Lost to retention",
            about="Records that were deleted from a topic before they were read.",
            queries=(
                Query(
                    "sum by (instance) (increase(dupwatch_records_lost_to_retention_total{$of}[$__rate_interval]))",
                    "{{instance}}",
                ),
            ),
            steps=(Step(1, "red"),),
            runbooks=("records-lost",),
        ),
        Panel(
            title="Sink made anew",
            about="Times that the sink's client was made anew: a transaction ended without an answer.",
            queries=(
                Query(
                    "sum by (instance) (increase(dupwatch_sink_reconnections_total{$of}[$__rate_interval]))",
                    "{{instance}}",
                ),
            ),
            runbooks=("reconnecting",),
        ),
    ),
)

_PROCESS: Final = Row(
    "The processes",
    (
        Panel(
            title="Memory",
            about="The main process's own, without the pages of an LMDB store; the line is the alert's.",
            queries=(Query("dupwatch_own_memory_bytes{$of}", "{{instance}}"),),
            unit="bytes",
            steps=(Step(800 * 1024 * 1024, "orange"),),
            runbooks=("memory-high",),
        ),
        Panel(
            title="Processor",
            about="Of the main process: 1 is a whole core.",
            queries=(Query("rate(process_cpu_seconds_total{$of}[$__rate_interval])", "{{instance}}"),),
            runbooks=("lag-growing",),
        ),
        Panel(
            title="Running since",
            about="How long each process has been running.",
            queries=(Query("time() - process_start_time_seconds{$of}", "{{instance}}"),),
            unit="s",
            runbooks=("restarting",),
        ),
        Panel(
            title="What runs",
            about="Version, scheme, block plan, and the digest of all settings that change verdicts.",
            queries=(Query("max by (instance, version, scheme, plan, settings) (dupwatch_build_info{$of})"),),
            kind="table",
            width=24,
            height=6,
            runbooks=("mixed-builds",),
        ),
    ),
)

PIPELINE: Final = Dashboard(
    "pipeline",
    "dupwatch: pipeline",
    "How well articles come through: throughput, latency, lag, time per stage, and what goes wrong.",
    (_NOW, _THROUGH, _LATENCY, _STAGES, _WRONG, _PROCESS),
)
