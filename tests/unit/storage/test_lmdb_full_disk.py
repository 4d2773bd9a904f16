"""A disk without room: ``StoreFull`` in one sentence, and no damage."""

import json
import subprocess
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.unit.storage.processes import fill_disk, on_small_disk


@pytest.fixture(scope="module")
def _small_disks() -> None:
    """Skip where a user may not mount a disk of his own."""
    tried = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no user namespaces here: {tried.stderr.strip()}")


def check(outcome: dict[str, Any], path: Path) -> None:
    """All that was acknowledged is there, nothing half-written is, and every error says what is the matter."""
    assert outcome["acknowledged"] > 100
    assert outcome["found"] == outcome["acknowledged"]
    assert outcome["is_unchanged"]
    assert outcome["scanned"] % 20 == 0
    assert len(outcome["errors"]) == 5
    for error in outcome["errors"]:
        assert error.startswith(f"No space is left for the store {path}: ")
        assert error.endswith(" Acknowledged writes are safe.")


@pytest.mark.parametrize("file_bytes_max", [1 << 20, 1_000_000])
def test_a_file_at_the_limit_of_the_process_is_full(file_bytes_max: int, tmp_path: Path) -> None:
    """Also where the limit is within a page, and a write is cut short."""
    with get_context("spawn").Pool(1) as pool:
        check(pool.apply(fill_disk, (tmp_path / "store", file_bytes_max)), tmp_path / "store")


@pytest.mark.usefixtures("_small_disks")
def test_a_full_disk_is_full(tmp_path: Path) -> None:
    """A real one, of two megabytes."""
    path = tmp_path / "store"
    run = on_small_disk(tmp_path, "2m", f"fill_disk(pathlib.Path({str(path)!r}), None)")
    assert run.returncode == 0, run.stderr
    check(json.loads(run.stdout), path)


@pytest.mark.usefixtures("_small_disks")
def test_opening_on_a_disk_without_a_free_block_is_an_error_and_no_crash(tmp_path: Path) -> None:
    """LMDB alone ends the process with SIGBUS there; nothing is left behind."""
    run = on_small_disk(tmp_path, "1m", f"open_without_room(pathlib.Path({str(tmp_path / 'store')!r}))")
    assert run.returncode == 0, run.stderr
    assert json.loads(json.loads(run.stdout)) == ["StoreFull", []]
