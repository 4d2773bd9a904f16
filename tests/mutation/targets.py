"""What is changed, and which tests could see it: cheap ones first, those with servers last."""

from pathlib import Path
from typing import Final, NamedTuple


class Target(NamedTuple):
    """Modules that the same tests are about; ``tiers`` are arguments of pytest, one run each."""

    modules: tuple[str, ...]
    tiers: tuple[tuple[str, ...], ...]

    def files(self, root: Path) -> list[str]:
        """The modules by path, from the root of the checkout."""
        found = {path for pattern in self.modules for path in root.glob(pattern)}
        return sorted(str(path.relative_to(root)) for path in found if path.name != "__init__.py")


_NO_LOAD: Final = ("--ignore=tests/hbase/test_load.py",)

TARGETS: Final = {
    "judge": Target(
        tuple(
            f"consumer/{name}.py"
            for name in (
                *("candidates", "comparison", "decision", "detector", "events", "known_originals", "releases"),
                "versions",
            )
        ),
        (
            ("tests/unit/judge", "tests/unit/io/test_events.py", "tests/unit/pages/test_latest_flags.py"),
            ("tests/protocol", "tests/cli/test_sample.py", "tests/cli/test_release.py", "tests/cli/test_fact_guard.py"),
            ("tests/retrieval", "tests/cli/test_looking.py", "tests/chaos", "--ignore=tests/chaos/kafka"),
        ),
    ),
    "sources": Target(
        ("consumer/sources/*.py",),
        (
            ("tests/unit/io", "tests/unit/test_watermarks.py", "tests/unit/test_poison.py"),
            ("tests/cli/test_resuming.py", "tests/cli/test_bad_input.py", "tests/cli/test_streams.py"),
            ("tests/kafka/test_source.py", "tests/kafka/test_stretch.py", "tests/kafka/test_run.py"),
        ),
    ),
    "sinks": Target(
        ("consumer/sinks/*.py",),
        (
            ("tests/unit/io", "tests/unit/test_delivery.py", "tests/unit/test_dead_letters.py"),
            (
                *("tests/cli/test_power_loss.py", "tests/cli/test_file_modes.py", "tests/cli/test_resuming.py"),
                *("tests/cli/test_streams.py", "tests/cli/test_exit_codes.py", "tests/cli/test_sample.py"),
            ),
            ("tests/kafka/test_sink.py", "tests/kafka/test_transactions.py", "tests/kafka/test_run.py"),
        ),
    ),
    "lmdb": Target(
        ("storage/lmdb/*.py",),
        (
            ("tests/unit/storage", "tests/contract", "-k", "lmdb"),
            (
                *("tests/cli/test_damaged_store.py", "tests/cli/test_power_loss.py", "tests/cli/test_file_modes.py"),
                *("tests/cli/test_looking_without_rights.py", "tests/cli/test_exit_codes.py"),
                "tests/chaos/test_lmdb_kill.py",
            ),
        ),
    ),
    "hbase": Target(
        ("storage/hbase/*.py",),
        (
            ("tests/unit/storage", "-k", "hbase or posting_rows or set_plans"),
            ("tests/contract", "-k", "hbase"),
            ("tests/hbase", "tests/cli/test_store_init.py", "tests/cli/test_store_pack.py", *_NO_LOAD),
        ),
    ),
}
"""The groups that mutants are drawn from, the same number of each."""
