"""The pipeline: throughput, latency, lag, where the time goes, errors, and the processes."""

from typing import Final

from deploy.grafana.panels import Dashboard, Panel, Query, Row, Step, heatmap, quantiles, stat

_ANSWERED: Final = "(sum(rate(dupwatch_articles_total{$of}[5m])) + sum(rate(dupwatch_dead_letters_total{$of}[5m])))"

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Consumers",
            "Consumers that answer.",
            "sum(up{$of})",
            steps=(Step(0, "red"), Step(1, "green")),
            runbooks=("consumer-down#DupwatchDown", "consumer-down#DupwatchInstanceDown"),
        ),
        stat(
            "Unreachable",
            "Sources, sinks and stores that consumers cannot reach.",
            "sum(dupwatch_unreachable{$of})",
            steps=(Step(1, "red"),),
            runbooks=("store#DupwatchStoreUnreachable", "brokers"),
        ),
        stat("Throughput", "Articles and dead letters per second.", _ANSWERED, "suffix:/s"),
        stat(
            "Lag",
            "Records in the topics that are not committed.",
            "sum(dupwatch_lag_records{$of})",
            steps=(Step(1000, "orange"),),
            runbooks=("lag", "no-progress#DupwatchNothingProcessed"),
        ),
        stat(
            "Lag in time",
            "How long it takes to judge the lag at the current rate.",
            f"sum(dupwatch_lag_records{{$of}}) / ({_ANSWERED} > 0)",
            "s",
            steps=(Step(600, "orange"),),
            runbooks=("lag",),
        ),
        stat(
            "Latency, p99",
            "From an article's arrival until its verdict is committed.",
            "histogram_quantile(0.99, sum by (le) (rate(dupwatch_end_to_end_seconds_bucket{$of}[5m])))",
            "s",
            steps=(Step(1, "orange"),),
            runbooks=("lag#DupwatchLatencyHigh",),
        ),
    ),
)

_THROUGH: Final = Row(
    "Throughput and lag",
    (
        Panel(
            title="Articles by consumer",
            about="Judged per second.",
            queries=(
                Query("sum by (instance) (rate(dupwatch_articles_total{$of}[$__rate_interval]))", "{{instance}}"),
            ),
            unit="suffix:/s",
            stacked=True,
            runbooks=("no-progress#DupwatchNothingProcessed",),
        ),
        Panel(
            title="Lag per partition",
            about="Records that are not committed. If only one partition grows: a hot key, or its consumer hangs.",
            queries=(Query("sum by (topic, partition) (dupwatch_lag_records{$of})", "{{topic}} {{partition}}"),),
            stacked=True,
            runbooks=("lag", "no-progress#DupwatchNothingProcessed"),
        ),
        Panel(
            title="Partitions per consumer",
            about="A consumer without partitions is a spare if others have some.",
            queries=(Query("sum by (instance) (dupwatch_assigned_partitions{$of})", "{{instance}}"),),
            runbooks=("group#DupwatchNothingAssigned",),
        ),
    ),
)

_LATENCY: Final = Row(
    "Latency",
    (
        Panel(
            title="End to end",
            about="From an article's arrival until its verdict is written and committed. The line is the target.",
            queries=quantiles("dupwatch_end_to_end_seconds"),
            unit="s",
            steps=(Step(1, "orange"),),
            width=12,
            runbooks=("lag#DupwatchLatencyHigh",),
        ),
        Panel(
            title="Time since the last batch",
            about="Since each consumer last committed a batch; it rises while the feed is quiet.",
            queries=(
                Query(
                    "time() - (dupwatch_last_processed_timestamp_seconds{$of} > 0)",
                    "{{instance}}",
                ),
            ),
            unit="s",
            width=12,
            runbooks=("no-progress#DupwatchNothingProcessed",),
        ),
        heatmap("End to end, distribution", "Distribution of the latency.", "dupwatch_end_to_end_seconds", "s"),
        Panel(
            title="Heartbeat of the loops",
            about="Time since a loop last turned; the main loop rests while there are no records.",
            queries=(
                Query(
                    "time() - (dupwatch_loop_heartbeat_timestamp_seconds{$of} > 0)",
                    "{{instance}} {{thread}}",
                ),
            ),
            unit="s",
            steps=(Step(60, "red"),),
            runbooks=("no-progress#DupwatchLoopStuck",),
        ),
        Panel(
            title="Busy",
            about="Share of scrapes during which a batch was being processed.",
            queries=(Query("avg by (instance) (avg_over_time(dupwatch_busy{$of}[$__rate_interval]))", "{{instance}}"),),
            unit="percentunit",
            share=True,
            runbooks=("no-progress#DupwatchLoopStuck",),
        ),
    ),
)

_STAGES: Final = Row(
    "Where the time goes",
    (
        Panel(
            title="Time per stage",
            about="Seconds per second, over all consumers; poll waits for records, workers fingerprint in parallel.",
            queries=(Query("sum by (stage) (rate(dupwatch_stage_seconds_sum{$of}[$__rate_interval]))", "{{stage}}"),),
            unit="s",
            stacked=True,
            width=12,
            runbooks=("lag", "lag#DupwatchLatencyHigh"),
        ),
        Panel(
            title="Batch time per stage",
            about="99 % of the batches took less.",
            queries=quantiles("dupwatch_stage_seconds", "stage", shares=(0.99,)),
            unit="s",
            width=12,
            runbooks=("lag#DupwatchLatencyHigh",),
        ),
        heatmap("Records per batch", "Batches are small while the feed is quiet.", "dupwatch_batch_records"),
        Panel(
            title="Batch fill",
            about="How full batches were; if they are always full, the consumer is behind.",
            queries=quantiles("dupwatch_batch_fill_ratio"),
            unit="percentunit",
            share=True,
        ),
        Panel(
            title="Bytes per batch",
            about="Size of the records in a batch.",
            queries=quantiles("dupwatch_batch_bytes"),
            unit="bytes",
        ),
        Panel(
            title="Back-pressure",
            about="Share of time without fetching, because the fetched records were not judged yet.",
            queries=(
                Query(
                    "sum by (instance) "
                    '(rate(dupwatch_stage_seconds_sum{$of, stage="back_pressure"}[$__rate_interval]))',
                    "{{instance}}: waiting",
                ),
                Query(
                    "avg by (instance) (avg_over_time(dupwatch_paused{$of}[$__rate_interval]))", "{{instance}}: paused"
                ),
            ),
            unit="percentunit",
            width=12,
            runbooks=("lag",),
        ),
        Panel(
            title="Worker utilization",
            about="How busy one worker is; without workers, the share of time that the main thread fingerprints.",
            queries=(
                Query(
                    'sum by (instance) (rate(dupwatch_stage_seconds_sum{$of, stage="fingerprint"}[$__rate_interval]))'
                    " / sum by (instance) (clamp_min(dupwatch_workers{$of}, 1))",
                    "{{instance}}",
                ),
            ),
            unit="percentunit",
            width=12,
            runbooks=("lag",),
        ),
    ),
)

_ERRORS: Final = Row(
    "Errors",
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
            runbooks=(
                "dead-letters",
                "dead-letters#DupwatchDeadLetterShare",
                "dead-letters#DupwatchPoisonNearLimit",
            ),
        ),
        Panel(
            title="Held partitions",
            about="Partitions held until somebody resumes them: too many records cannot be judged or unpacked.",
            queries=(Query("max by (topic, partition) (dupwatch_partition_held{$of})", "{{topic}} {{partition}}"),),
            stacked=True,
            steps=(Step(1, "red"),),
            runbooks=("partition-held",),
        ),
        Panel(
            title="Errors",
            about="Errors that did not end the run, by type.",
            queries=(Query("sum by (type) (increase(dupwatch_errors_total{$of}[$__rate_interval]))", "{{type}}"),),
            runbooks=("errors",),
        ),
        Panel(
            title="Outages",
            about="Times that a part became unreachable, and reachable again.",
            queries=(
                Query("sum by (part) (increase(dupwatch_outages_total{$of}[$__rate_interval]))", "{{part}} lost"),
                Query("sum by (part) (increase(dupwatch_recoveries_total{$of}[$__rate_interval]))", "{{part}} back"),
            ),
            runbooks=("connections", "store#DupwatchStoreUnreachable", "brokers"),
        ),
        Panel(
            title="Rebalances",
            about="Times that partitions were assigned, revoked or lost.",
            queries=(Query("sum by (what) (increase(dupwatch_rebalances_total{$of}[$__rate_interval]))", "{{what}}"),),
            runbooks=("group#DupwatchRebalancing",),
        ),
        Panel(
            title="Partitions that lack a replica",
            about="Partitions of the source's topics with at least one replica that is not in sync.",
            queries=(Query("max by (topic) (dupwatch_under_replicated_partitions{$of})", "{{topic}}"),),
            steps=(Step(1, "orange"),),
            runbooks=("brokers#DupwatchUnderReplicated",),
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
            title="Sink reconnections",
            about="Times that the client of the sink was replaced, after a transaction whose outcome is unknown.",
            queries=(
                Query(
                    "sum by (instance) (increase(dupwatch_sink_reconnections_total{$of}[$__rate_interval]))",
                    "{{instance}}",
                ),
            ),
            runbooks=("connections",),
        ),
    ),
)

_PROCESS: Final = Row(
    "The processes",
    (
        Panel(
            title="Memory",
            about="Of the main process, without an LMDB store's pages. The line is the threshold of the alert.",
            queries=(Query("dupwatch_own_memory_bytes{$of}", "{{instance}}"),),
            unit="bytes",
            steps=(Step(800 * 1024 * 1024, "orange"),),
            runbooks=("memory-high",),
        ),
        Panel(
            title="CPU",
            about="CPU use of the main process; 1 is a whole core.",
            queries=(Query("rate(process_cpu_seconds_total{$of}[$__rate_interval])", "{{instance}}"),),
            runbooks=("lag",),
        ),
        Panel(
            title="Uptime",
            about="How long each process has been running.",
            queries=(Query("time() - process_start_time_seconds{$of}", "{{instance}}"),),
            unit="s",
            runbooks=("consumer-down#DupwatchRestarting",),
        ),
        Panel(
            title="Certificate",
            about="How long the certificate of the pages is still valid. The line is the threshold of the alert.",
            queries=(Query("(dupwatch_certificate_expiry_timestamp_seconds{$of} > 0) - time()", "{{instance}}"),),
            unit="s",
            steps=(Step(0, "red"), Step(7 * 86_400, "green")),
            runbooks=("certificate-expires",),
        ),
        Panel(
            title="Clock",
            about="How far the machine's clock was set ahead of the process, negative if behind; it should be 0.",
            queries=(Query("dupwatch_clock_ahead_seconds{$of}", "{{instance}}"),),
            unit="s",
            runbooks=("clock-set",),
        ),
        Panel(
            title="Steps of the clock",
            about="How often the machine's clock was set in the last hour, as far as the process noticed.",
            queries=(Query("increase(dupwatch_clock_steps_total{$of}[1h])", "{{instance}}"),),
            runbooks=("clock-set",),
        ),
        Panel(
            title="Builds",
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
    "Throughput, latency, lag, time per stage, and errors.",
    (_NOW, _THROUGH, _LATENCY, _STAGES, _ERRORS, _PROCESS),
)
