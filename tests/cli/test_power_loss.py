"""A power loss at any moment of a run: what was acknowledged is on the disk, and the run resumes."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Command, articles, json_lines, write_lines
from tests.cli.disk import Disk

SMALL_BATCHES = ("--set", "source.batch_records_max=4")


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    """Articles, some of them copies, and invalid records."""
    records: list[object] = list(articles(range(12)))
    records[3:3] = [b"none"]
    records[9:9] = [b"none either"]
    return write_lines(tmp_path / "feed.jsonl", records)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A folder whose writes are recorded."""
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk", monkeypatch)
    yield disk
    disk.close()


def run(feed: Path, folder: Path) -> tuple[str | Path, ...]:
    """Return the command line."""
    to = ("--sink", folder / "out", "--store", f"lmdb:{folder / 'new' / 'store'}")
    return ("run", "--emit", "all", "--source", feed, *to, *SMALL_BATCHES)


def answers_of(folder: Path) -> tuple[list[tuple[object, ...]], list[object]]:
    """Return the verdicts without their times, and the positions of the dead letters."""
    verdicts = json_lines((folder / "out").read_bytes())
    letters = json_lines((folder / "out.dead-letters.jsonl").read_bytes())
    return (
        [(verdict["id"], verdict["outcome"], verdict["duplicate_of"], verdict["arrived_at"]) for verdict in verdicts],
        [letter["position"] for letter in letters],
    )


@pytest.mark.parametrize("store", [(), ("--store", "memory:")], ids=["lmdb", "memory"])
def test_what_a_run_has_said_is_on_the_disk_when_it_ends(
    dupwatch: Command, feed: Path, disk: Disk, tmp_path: Path, store: tuple[str, ...]
) -> None:
    """Every name and every byte of verdicts, dead letters, checkpoint and store."""
    assert dupwatch(*run(feed, disk.folder), *store).code == 0
    image = tmp_path / "image"
    disk.image(image)
    there, left = (
        {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.name != "lock.mdb"
        }
        for folder in (disk.folder, image)
    )
    assert left == there
    assert len(there) == (2 if store else 4)
    assert store or json.loads(there["out.checkpoint.json"])["finished"]


def test_a_run_goes_on_after_a_loss_of_power_at_any_moment(
    dupwatch: Command, feed: Path, disk: Disk, tmp_path: Path
) -> None:
    """What is on the disk before and after each write can be resumed."""
    images: list[Path] = []

    def keep() -> None:
        image = tmp_path / f"image-{len(images)}"
        disk.image(image)
        images.append(image)

    disk.moment = keep
    assert dupwatch(*run(feed, disk.folder)).code == 0
    disk.moment = lambda: None
    verdicts, letters = answers_of(disk.folder)
    checked = set()
    for image in images:
        state = tuple(
            sorted((str(path.relative_to(image)), path.read_bytes()) for path in image.rglob("*") if path.is_file())
        )
        if state not in checked:
            checked.add(state)
            ended = dupwatch(*run(feed, image))
            assert ended.code == 0, (image.name, ended.err)
            again, letters_again = answers_of(image)
            assert [verdict[:3] for verdict in again] == [verdict[:3] for verdict in verdicts], image.name
            assert letters_again == letters
            # One time of arrival: that of a run that had begun, as soon as anything of it was said.
            assert len({verdict[3] for verdict in again}) == 1
        shutil.rmtree(image)
    assert len(checked) > 10


def test_an_idf_table_is_whole_or_the_old_one(dupwatch: Command, feed: Path, disk: Disk, tmp_path: Path) -> None:
    """At every moment while it is replaced."""
    table = disk.folder / "idf.txt"
    build = ("idf", "build", feed, "--output", table)
    assert dupwatch(*build).code == 0
    old = table.read_bytes()
    write_lines(feed, articles(range(20)))
    found = []

    def keep() -> None:
        disk.image(tmp_path / "image")
        found.append((tmp_path / "image" / "idf.txt").read_bytes())
        shutil.rmtree(tmp_path / "image")

    disk.moment = keep
    assert dupwatch(*build).code == 0
    assert set(found) == {old, table.read_bytes()}
    assert found[-1] == table.read_bytes() != old


def test_the_disk_of_these_tests_forgets_what_was_not_waited_for(disk: Disk, tmp_path: Path) -> None:
    """A file without ``fsync`` is empty; without ``fsync`` of its folder, it does not exist."""
    for name in ("synced", "content", "name"):
        descriptor = os.open(disk.folder / name, os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, b"text")
        if name != "name":
            folder = os.open(disk.folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        if name == "synced":
            os.fsync(descriptor)
        os.close(descriptor)
    disk.image(tmp_path / "image")
    left = {path.name: path.read_bytes() for path in (tmp_path / "image").iterdir()}
    assert left == {"synced": b"text", "content": b""}
