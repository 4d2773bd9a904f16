"""Every metric by name: its type, its labels, its unit and what it means. ``docs/metrics.md`` is made of this.

Units are Prometheus' base units and stand at the end of a name. Labels are bounded: their values come from lists that
are fixed here, or something else bounds them that is said. Nothing is labelled by an article.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from consumer.judge.histogram import COUNTS, SHARES
from consumer.model.article import Reason, TimeFault
from consumer.model.hooks import Part
from consumer.model.verdict import Outcome
from consumer.pipeline.stages import Stage
from consumer.sources.kafka_client import Rebalance
from consumer.telemetry.source_names import NONE, OTHER
from storage.watched import ConnectionChange, Ending
from storage.wrapped import Operation

TimedStage = Literal[Stage, "back_pressure"]
Trouble = Literal[Part, "batch_abandoned", "request", "offset_note"]
Thread = Literal["client", "main"]
Kind = Literal["copy", "near"]

SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
SHORT_SECONDS: Final = (0.0001, 0.0002, 0.0005, *SECONDS)
BYTES: Final = tuple(1024.0 * 4**power for power in range(10))
FILLS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.99, 1.0)
DISTANCES: Final = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)


class Label(NamedTuple):
    """A label: the values that are there from the start, and what bounds those that are not."""

    name: str
    values: tuple[str, ...] = ()
    others: str = ""


class Measure(NamedTuple):
    """A metric. ``name`` is that of its samples, but for the ends that a histogram gives them, which has ``bounds``."""

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    unit: str
    labels: tuple[Label, ...] = ()
    bounds: tuple[float, ...] = ()


TIMED_STAGES: Final[tuple[TimedStage, ...]] = get_args(TimedStage)
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)
ENDINGS: Final[tuple[Ending, ...]] = get_args(Ending)
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
THREADS: Final[tuple[Thread, ...]] = get_args(Thread)
_PARTS: Final = Label("part", get_args(Part))
_OUTCOMES: Final = Label("outcome", OUTCOMES)
_OPERATIONS: Final = Label("operation", OPERATIONS)

ARTICLES: Final = Measure(
    "dupwatch_articles_total", "counter", "Articles answered, by what was said.", "articles", (_OUTCOMES,)
)
DUPLICATES: Final = Measure(
    "dupwatch_duplicates_total",
    "counter",
    "Duplicates: copies have the same fingerprint and similarity 1, all others are near.",
    "articles",
    (Label("kind", KINDS),),
)
SOURCE_ARTICLES: Final = Measure(
    "dupwatch_source_articles_total",
    "counter",
    "Articles answered, by the source that they name.",
    "articles",
    (Label("source", (NONE, OTHER), "those of `[rules]`, and the first that come: `http.sources_max`"), _OUTCOMES),
)
DEAD_LETTERS: Final = Measure(
    "dupwatch_dead_letters_total",
    "counter",
    "Records that could not be judged.",
    "records",
    (Label("reason", (*sorted(map(str, Reason)), OTHER)),),
)
TIMES_UNREAD: Final = Measure(
    "dupwatch_published_at_unread_total",
    "counter",
    "Articles judged without their `published_at`, which could not be read.",
    "articles",
    (Label("reason", tuple(sorted(map(str, TimeFault)))),),
)
TIMES_REPLACED: Final = Measure(
    "dupwatch_record_times_replaced_total",
    "counter",
    "Records whose time was missing or impossible, and became the ingest time.",
    "records",
)
TIMES_MOVED: Final = Measure(
    "dupwatch_record_times_moved_total",
    "counter",
    "Dead letters and copies in the clean feed whose record's time no topic takes: it is in a header.",
    "messages",
)
HEADERS_LOST: Final = Measure(
    "dupwatch_records_headers_lost_total",
    "counter",
    "Records with headers that the Kafka client cannot hand out as they came.",
    "records",
)
TIMES_BEHIND: Final = Measure(
    "dupwatch_record_times_behind_total",
    "counter",
    "Records stamped more than `kafka.behind_s_max` before the highest arrival of their partition, which they got.",
    "records",
)
WITHOUT_KEYWORDS: Final = Measure(
    "dupwatch_articles_without_keywords_total",
    "counter",
    "Versions that have no keyword, and so match nothing.",
    "articles",
)
REPEATED: Final = Measure(
    "dupwatch_verdicts_repeated_total",
    "counter",
    "Versions that had been judged before, and got the verdict they had.",
    "articles",
)
TRUNCATED: Final = Measure(
    "dupwatch_verdicts_truncated_total", "counter", "Versions whose search was cut short by a limit.", "articles"
)
KNOWN_COPIES: Final = Measure(
    "dupwatch_known_copies_total",
    "counter",
    "Duplicates settled by a known original, without postings.",
    "articles",
)
FLOODS: Final = Measure(
    "dupwatch_floods_total", "counter", "Originals of which this process has seen the 100th copy.", "floods"
)
FLOOD_COPIES: Final = Measure(
    "dupwatch_flood_copies_total", "counter", "Copies of such originals, from the 100th on.", "articles"
)
KEYWORDS: Final = Measure(
    "dupwatch_article_keywords", "histogram", "Distinct keywords of an article.", "keywords", bounds=COUNTS
)
DUPLICATE_SIMILARITY: Final = Measure(
    "dupwatch_duplicate_similarity_ratio",
    "histogram",
    "Similarity of a duplicate and what it repeats.",
    "ratio",
    bounds=SHARES,
)
DUPLICATE_DISTANCE: Final = Measure(
    "dupwatch_duplicate_distance",
    "histogram",
    "Distance of a duplicate and what it repeats: bits of the fingerprint that differ.",
    "distance in bits",
    bounds=DISTANCES,
)
COMPARED_SIMILARITY: Final = Measure(
    "dupwatch_compared_similarity_ratio",
    "histogram",
    "Similarity of each pair that was compared, near or not.",
    "ratio",
    bounds=SHARES,
)
CANDIDATES: Final = Measure(
    "dupwatch_article_candidates",
    "histogram",
    "Earlier versions that postings named as possibly near to an article.",
    "candidates",
    bounds=COUNTS,
)
SUSPECTS: Final = Measure(
    "dupwatch_article_suspects",
    "histogram",
    "Candidates that are not within max_distance of an article by fingerprint: only the sketch can tell.",
    "candidates",
    bounds=COUNTS,
)
VERIFICATIONS: Final = Measure(
    "dupwatch_article_verifications",
    "histogram",
    "Records that an article was compared with at once.",
    "records",
    bounds=COUNTS,
)
CROWDED_ROWS: Final = Measure(
    "dupwatch_crowded_row_reads_total",
    "counter",
    "Rows with more postings than store.row_postings_max, of which a look-up read a part.",
    "rows",
)
CROWDED_ARTICLES: Final = Measure(
    "dupwatch_crowded_articles_total",
    "counter",
    "Articles whose search was cut short among many candidates, as their fingerprint is crowded.",
    "articles",
)
ROW_READS: Final = Measure("dupwatch_posting_row_reads_total", "counter", "Rows of postings read.", "rows")
POSTINGS_READ: Final = Measure(
    "dupwatch_postings_read_total", "counter", "Postings in the rows that were read.", "postings"
)
RECORD_READS: Final = Measure("dupwatch_record_reads_total", "counter", "Records read from the store.", "records")
LOST_COMPARE_AND_SETS: Final = Measure(
    "dupwatch_lost_compare_and_sets_total", "counter", "Verdicts that somebody else had written first.", "verdicts"
)
END_TO_END: Final = Measure(
    "dupwatch_end_to_end_seconds",
    "histogram",
    "From a record's time to its verdict being written and committed; not of verdicts that are given again.",
    "seconds",
    bounds=SECONDS,
)
STAGES: Final = Measure(
    "dupwatch_stage_seconds",
    "histogram",
    "How long a stage of a batch took; poll waits for records; back_pressure is a wait of the client, of up to 0.1 s.",
    "seconds",
    (Label("stage", TIMED_STAGES),),
    SHORT_SECONDS,
)
BATCH_RECORDS: Final = Measure("dupwatch_batch_records", "histogram", "Records of a batch.", "records", bounds=COUNTS)
BATCH_BYTES: Final = Measure(
    "dupwatch_batch_bytes", "histogram", "Size of the records of a batch.", "bytes", bounds=BYTES
)
BATCH_FILL: Final = Measure(
    "dupwatch_batch_fill_ratio",
    "histogram",
    "How full a batch was: the larger of its shares of source.batch_records_max and source.batch_bytes_max.",
    "ratio",
    bounds=FILLS,
)
LAG: Final = Measure(
    "dupwatch_lag_records",
    "gauge",
    "Offsets of a partition behind what was answered, but for held ones. Those without a record are passed over within "
    "5 seconds.",
    "records",
    (
        Label("topic", others="the topics that are read"),
        Label("partition", others="the partitions that are this consumer's"),
    ),
)
PARTITION_HELD: Final = Measure(
    "dupwatch_partition_held",
    "gauge",
    "1 while this consumer does not read a partition, since too many of its records cannot be judged, or since the "
    "client cannot unpack its next batch; else 0.",
    "0 or 1",
    (
        Label("topic", others="the topics that are read"),
        Label("partition", others="the partitions that are this consumer's"),
    ),
)
ASSIGNED: Final = Measure("dupwatch_assigned_partitions", "gauge", "Partitions that are this consumer's.", "partitions")
REBALANCES: Final = Measure(
    "dupwatch_rebalances_total",
    "counter",
    "Times that partitions came or went.",
    "times",
    (Label("what", get_args(Rebalance)),),
)
PAUSED: Final = Measure("dupwatch_paused", "gauge", "1 while nothing is fetched.", "0 or 1")
LOST_TO_RETENTION: Final = Measure(
    "dupwatch_records_lost_to_retention_total",
    "counter",
    "Records that were deleted from a topic before they were read.",
    "records",
)
ERRORS: Final = Measure(
    "dupwatch_errors_total",
    "counter",
    "What went wrong without ending the run.",
    "errors",
    (Label("type", get_args(Trouble)),),
)
UNREACHABLE: Final = Measure("dupwatch_unreachable", "gauge", "1 while that part is out of reach.", "0 or 1", (_PARTS,))
OUTAGES: Final = Measure(
    "dupwatch_outages_total", "counter", "Times that a part went out of reach.", "times", (_PARTS,)
)
RECOVERIES: Final = Measure(
    "dupwatch_recoveries_total", "counter", "Times that a part was within reach again.", "times", (_PARTS,)
)
SINK_RECONNECTIONS: Final = Measure(
    "dupwatch_sink_reconnections_total", "counter", "Times that the sink's client was made anew.", "times"
)
STORE_OPERATIONS: Final = Measure(
    "dupwatch_store_operations_total",
    "counter",
    "Calls of the store, by how they ended after all repeats.",
    "calls",
    (_OPERATIONS, Label("outcome", ENDINGS)),
)
STORE_SECONDS: Final = Measure(
    "dupwatch_store_operation_seconds",
    "histogram",
    "How long a call of the store took.",
    "seconds",
    (_OPERATIONS,),
    SHORT_SECONDS,
)
STORE_REPEATS: Final = Measure(
    "dupwatch_store_repeats_total",
    "counter",
    "Times that a call of the store asked HBase again, after an error or without an answer; none of other stores.",
    "times",
    (_OPERATIONS,),
)
STORE_CONNECTIONS: Final = Measure(
    "dupwatch_store_connections_total",
    "counter",
    "Connections to an HBase's gateways that were made, could not be made, or broke; none of other stores.",
    "connections",
    (Label("what", get_args(ConnectionChange)),),
)
BUILD: Final = Measure(
    "dupwatch_build_info",
    "info",
    "What runs; settings is the SHA-256 of all that changes verdicts.",
    "1",
    tuple(Label(name, others="one value") for name in ("version", "scheme", "plan", "settings")),
)
WORKERS: Final = Measure("dupwatch_workers", "gauge", "Processes that make fingerprints beside the judge.", "processes")
OWN_MEMORY: Final = Measure(
    "dupwatch_own_memory_bytes",
    "gauge",
    "Memory of the main process that nobody else can have: without the pages of files, such as an LMDB store's, which "
    "the system takes back when it needs them; 0 where the system does not tell (only Linux does).",
    "bytes",
)
BUSY: Final = Measure(
    "dupwatch_busy", "gauge", "1 while a batch is worked on, 0 while records are waited for.", "0 or 1"
)
LAST_PROCESSED: Final = Measure(
    "dupwatch_last_processed_timestamp_seconds",
    "gauge",
    "When a batch was last committed; 0 before the first.",
    "seconds since 1970",
)
HEARTBEAT: Final = Measure(
    "dupwatch_loop_heartbeat_timestamp_seconds",
    "gauge",
    "When the loop of a thread last turned, 0 before it did; the main one rests while nothing comes.",
    "seconds since 1970",
    (Label("thread", THREADS),),
)

GROUPS: Final[Mapping[str, tuple[Measure, ...]]] = {
    "What was said": (
        ARTICLES, DUPLICATES, SOURCE_ARTICLES, DEAD_LETTERS, REPEATED, TRUNCATED, WITHOUT_KEYWORDS, TIMES_REPLACED,
        TIMES_MOVED, TIMES_BEHIND, HEADERS_LOST, TIMES_UNREAD,
    ),
    "Floods and drift": (
        FLOODS, FLOOD_COPIES, KNOWN_COPIES, KEYWORDS, DUPLICATE_SIMILARITY, DUPLICATE_DISTANCE, COMPARED_SIMILARITY,
    ),
    "How long it takes": (END_TO_END, STAGES, BATCH_RECORDS, BATCH_BYTES, BATCH_FILL),
    "What judging costs": (
        CANDIDATES, SUSPECTS, VERIFICATIONS, ROW_READS, POSTINGS_READ, RECORD_READS, LOST_COMPARE_AND_SETS,
        CROWDED_ROWS, CROWDED_ARTICLES,
    ),
    "The topics": (LAG, ASSIGNED, PARTITION_HELD, REBALANCES, PAUSED, LOST_TO_RETENTION),
    "The store": (STORE_OPERATIONS, STORE_SECONDS, STORE_REPEATS, STORE_CONNECTIONS),
    "What is out of reach": (UNREACHABLE, OUTAGES, RECOVERIES, SINK_RECONNECTIONS, ERRORS),
    "The run": (BUILD, WORKERS, OWN_MEMORY, BUSY, LAST_PROCESSED, HEARTBEAT),
}  # fmt: skip
"""All of them, as the documentation has them."""

TALLIED: Final[Mapping[str, Measure]] = {
    "without_keywords": WITHOUT_KEYWORDS,
    "replays": REPEATED,
    "known_copies": KNOWN_COPIES,
    "floods": FLOODS,
    "flood_copies": FLOOD_COPIES,
    "row_reads": ROW_READS,
    "postings_read": POSTINGS_READ,
    "record_reads": RECORD_READS,
    "lost_compare_and_sets": LOST_COMPARE_AND_SETS,
    "truncated": TRUNCATED,
    "crowded_rows": CROWDED_ROWS,
    "crowded_articles": CROWDED_ARTICLES,
    "candidates": CANDIDATES,
    "suspects": SUSPECTS,
    "verifications": VERIFICATIONS,
    "similarities": COMPARED_SIMILARITY,
}
"""The fields of the detector's tally that are told as they are."""
TOLD_OTHERWISE: Final = frozenset({"versions", "kept", "duplicates", "retractions", "look_up_s", "settle_s"})
"""The other fields, which are told by outcome, or by stage."""
