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
    (
        *("consumer/files/source.py", "consumer/decode/decompression.py", "consumer/files/lines.py"),
        *("consumer/files/rows.py", "consumer/files/tables.py", "consumer/files/clean_feed.py"),
        *("consumer/decode/rows.py", "consumer/decode/table_header.py", "consumer/decode/encodings.py"),
    ),
    (
        (
            *("tests/unit/files/test_rows.py", "tests/unit/files/test_tables.py"),
            *("tests/unit/decode/test_rows.py", "tests/unit/decode/test_encodings.py"),
            *("tests/unit/files/test_lines.py", "tests/unit/files/test_file_source.py"),
            "tests/unit/decode/test_unzstd.py",
            *("tests/unit/files/test_file_sink.py", "tests/unit/files/test_checkpoint.py"),
        ),
        ("tests/cli/test_resuming.py", "tests/cli/test_bad_input.py", "tests/cli/test_streams.py"),
        ("tests/cli/test_tables.py", "tests/cli/test_filter.py"),
    ),
)
_KAFKA_SOURCES: Final = Target(
    ("consumer/kafka/source/*.py",),
    (
        (*("tests/unit/kafka", "tests/unit/pipeline/test_arrivals.py"),),
        (
            *("tests/kafka/test_source.py", "tests/kafka/test_range_source.py", "tests/kafka/test_run.py"),
            *("tests/kafka/test_hostile_records.py", "tests/kafka/test_unpacking.py", "tests/kafka/test_poison.py"),
            *("tests/kafka/test_aborted_transactions.py", "tests/kafka/test_backdating.py"),
        ),
    ),
)
_REQUESTS: Final = Target(
    ("consumer/service/inbox.py",),
    (
        ("tests/unit/service/test_inbox.py", "tests/unit/wiring/test_service_loading.py"),
        ("tests/unit/service/test_storing.py", "tests/cli/serve"),
    ),
)
_ANSWERS: Final = Target(
    ("consumer/service/answering.py",),
    (("tests/unit/service/test_storing.py", "tests/unit/service/test_releasing.py"), ("tests/cli/serve",)),
)
_FILE_SINKS: Final = Target(
    (*("consumer/files/distinct_files.py", "consumer/files/sinks.py", "consumer/files/line_file.py"),),
    (
        ("tests/unit/files/test_file_sink.py", "tests/unit/files/test_whole_verdicts.py", "tests/cli/test_sinks.py"),
        ("tests/cli/test_power_loss.py", "tests/cli/test_file_modes.py", "tests/cli/test_resuming.py"),
        ("tests/cli/test_streams.py", "tests/cli/test_exit_codes.py", "tests/cli/test_sample.py"),
    ),
)
_KAFKA_SINKS: Final = Target(
    (
        *("consumer/kafka/sink/topic_sink.py", "consumer/kafka/sink/producing.py"),
        *("consumer/kafka/sink/outbox.py", "consumer/kafka/sink/record_times.py"),
        "consumer/kafka/sink/transactions.py",
    ),
    (
        (*("tests/unit/kafka/sink", "tests/unit/decode/test_message.py", "tests/unit/kafka/test_journals.py"),),
        (
            *("tests/kafka/test_sink.py", "tests/kafka/test_transactions.py", "tests/kafka/test_run.py"),
            *("tests/kafka/test_record_times.py", "tests/kafka/test_dead_letters.py", "tests/kafka/test_release.py"),
        ),
    ),
)
_DEAD_LETTERS: Final = Target(
    (
        *("consumer/files/letters.py", "consumer/files/opening.py", "consumer/pipeline/dead_letter_policy.py"),
        *("consumer/kafka/sink/letter_headers.py", "consumer/kafka/sink/letter_replay.py"),
        "consumer/kafka/sink/topic_letters.py",
    ),
    (
        ("tests/unit/kafka/sink", "tests/unit/pipeline/test_dead_letter_policy.py", "tests/cli/test_dead_letters.py"),
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
