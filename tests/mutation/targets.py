"""What is changed, and which tests could see it: cheap ones first, those with servers last."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple


class Target(NamedTuple):
    """Modules that the same tests are about; ``tiers`` are arguments of pytest, one run each."""

    modules: tuple[str, ...]
    tiers: tuple[tuple[str, ...], ...]

    def files(self, root: Path) -> Iterator[str]:
        """The modules by path, from the root of the checkout."""
        for pattern in self.modules:
            for path in sorted(root.glob(pattern)):
                if path.name != "__init__.py":
                    yield str(path.relative_to(root))


_JUDGE: Final = Target(
    (
        *(
            "consumer/judge/attempt.py",
            "consumer/judge/candidates.py",
            "consumer/judge/comparison.py",
            "consumer/judge/decision.py",
            "consumer/judge/detector.py",
        ),
        *(
            "consumer/judge/events.py",
            "consumer/judge/known_originals.py",
            "consumer/judge/near_misses.py",
            "consumer/judge/part_search.py",
            "consumer/judge/common_hashes.py",
            "consumer/judge/seen_texts.py",
            "consumer/judge/near_postings.py",
            "consumer/judge/situation.py",
            "consumer/judge/search.py",
            "consumer/judge/verdict_cells.py",
            "consumer/store_tools/releases.py",
            "consumer/judge/versions.py",
        ),
    ),
    (
        ("tests/unit/judge", "tests/unit/judge/test_events.py"),
        ("tests/protocol", "tests/cli/test_sample.py", "tests/cli/test_release.py", "tests/cli/test_fact_guard.py"),
        ("tests/retrieval", "tests/cli/test_looking.py", "tests/chaos", "--ignore=tests/chaos/kafka"),
    ),
)
_FILE_SOURCES: Final = Target(
    (*("consumer/sources/file.py", "consumer/decode/decompression.py", "consumer/sources/lines.py"),),
    (
        (
            *("tests/unit/sources/test_lines.py", "tests/unit/sources/test_file_source.py"),
            "tests/unit/decode/test_unzstd.py",
            *("tests/unit/sinks/test_file_sink.py", "tests/unit/pipeline/test_checkpoint.py"),
        ),
        ("tests/cli/test_resuming.py", "tests/cli/test_bad_input.py", "tests/cli/test_streams.py"),
    ),
)
_KAFKA_SOURCES: Final = Target(
    (
        *("consumer/sources/buffer.py", "consumer/sources/client_headers.py", "consumer/sources/commits.py"),
        *("consumer/sources/client_failure.py", "consumer/sources/fetching.py", "consumer/sources/gaps.py"),
        *("consumer/sources/group_places.py", "consumer/sources/membership.py", "consumer/sources/progress.py"),
        "consumer/sources/rebalances.py",
        *("consumer/sources/handover.py", "consumer/sources/holds.py", "consumer/sources/kafka*.py"),
        *("consumer/sources/partitions.py", "consumer/sources/range_source.py"),
        *("consumer/sources/replicas.py", "consumer/sources/unpacking.py"),
    ),
    (
        (
            *("tests/unit/sources", "tests/unit/kafka", "tests/unit/pipeline/test_offsets.py"),
            *(
                "tests/unit/kafka/test_offset_metadata.py",
                "tests/unit/pipeline/test_partition_gate.py",
                "tests/unit/pipeline/test_arrivals.py",
            ),
        ),
        (
            *("tests/kafka/test_source.py", "tests/kafka/test_range_source.py", "tests/kafka/test_run.py"),
            *("tests/kafka/test_hostile_records.py", "tests/kafka/test_unpacking.py", "tests/kafka/test_poison.py"),
            *("tests/kafka/test_aborted_transactions.py", "tests/kafka/test_backdating.py"),
        ),
    ),
)
_REQUESTS: Final = Target(
    ("consumer/sources/requests.py",),
    (
        ("tests/unit/sources/test_requests.py", "tests/unit/wiring/test_requests_run.py"),
        ("tests/unit/service/test_storing.py", "tests/cli/serve"),
    ),
)
_ANSWERS: Final = Target(
    ("consumer/sinks/answering.py",),
    (("tests/unit/service/test_storing.py", "tests/unit/service/test_releasing.py"), ("tests/cli/serve",)),
)
_FILE_SINKS: Final = Target(
    (
        *("consumer/pipeline/distinct_files.py", "consumer/sinks/file.py", "consumer/sinks/line_file.py"),
        *("consumer/sinks/emit.py", "consumer/sinks/nowhere.py", "consumer/sinks/streams.py"),
    ),
    (
        ("tests/unit/sinks/test_file_sink.py", "tests/unit/sinks/test_whole_verdicts.py", "tests/cli/test_sinks.py"),
        ("tests/cli/test_power_loss.py", "tests/cli/test_file_modes.py", "tests/cli/test_resuming.py"),
        ("tests/cli/test_streams.py", "tests/cli/test_exit_codes.py", "tests/cli/test_sample.py"),
    ),
)
_KAFKA_SINKS: Final = Target(
    (
        *("consumer/sinks/kafka.py", "consumer/sinks/producing.py"),
        *("consumer/sinks/at_least_once.py", "consumer/sinks/outbox.py"),
        *("consumer/sinks/record_times.py", "consumer/sinks/transactions.py"),
    ),
    (
        (
            *("tests/unit/kafka/test_event_headers.py", "tests/unit/kafka/test_letter_headers.py"),
            *(
                "tests/unit/decode/test_message.py",
                "tests/unit/sinks/test_transactions.py",
            ),
            *("tests/unit/sinks/test_producing.py", "tests/unit/sinks/test_waiting.py"),
            "tests/unit/pipeline/test_offsets.py",
        ),
        (
            *("tests/kafka/test_sink.py", "tests/kafka/test_transactions.py", "tests/kafka/test_run.py"),
            *("tests/kafka/test_record_times.py", "tests/kafka/test_dead_letters.py", "tests/kafka/test_release.py"),
        ),
    ),
)
_DEAD_LETTERS: Final = Target(
    ("consumer/dead_letters/*.py", "consumer/kafka/letter_headers.py", "consumer/wiring/dead_letters.py"),
    (
        ("tests/unit/dead_letters", "tests/unit/kafka/test_letter_headers.py", "tests/cli/test_dead_letters.py"),
        ("tests/cli/test_sinks.py", "tests/cli/test_exit_codes.py", "tests/cli/test_bad_input.py"),
        ("tests/kafka/test_dead_letters.py",),
    ),
)
_LMDB: Final = Target(
    ("storage/lmdb/*.py",),
    (
        ("tests/unit/storage", "tests/contract", "-k", "lmdb"),
        ("tests/cli/test_power_loss.py", "tests/cli/test_file_modes.py", "tests/cli/test_looking_without_rights.py"),
        ("tests/cli/test_damaged_store.py", "tests/cli/test_exit_codes.py", "tests/chaos/test_lmdb_kill.py"),
    ),
)
_HBASE: Final = Target(
    ("storage/hbase/*.py",),
    (
        ("tests/unit/storage", "-k", "hbase or posting_rows or set_plans"),
        ("tests/contract", "-k", "hbase"),
        ("tests/hbase", "tests/cli/test_store_init.py", "tests/cli/test_store_pack.py"),
    ),
)

GROUPS: Final = {
    "judge": (_JUDGE,),
    "sources": (_FILE_SOURCES, _REQUESTS, _KAFKA_SOURCES),
    "sinks": (_FILE_SINKS, _ANSWERS, _KAFKA_SINKS, _DEAD_LETTERS),
    "lmdb": (_LMDB,),
    "hbase": (_HBASE,),
}
"""What mutants are drawn from, the same number of each."""


def files(root: Path, group: str) -> list[str]:
    """All modules of a group."""
    return [module for target in GROUPS[group] for module in target.files(root)]


def tiers(root: Path, module: str) -> tuple[tuple[str, ...], ...]:
    """The tests that could see a change of this module."""
    found = [target.tiers for targets in GROUPS.values() for target in targets if module in target.files(root)]
    if len(found) != 1:
        raise ValueError(f"{module} is of {len(found)} targets instead of one")
    return found[0]
