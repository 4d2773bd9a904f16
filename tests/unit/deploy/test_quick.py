"""Archives of classes, with a Java and a jcmd that only pretend."""

import os
import sys
from pathlib import Path

import pytest

from deploy.local import quick

_JCMD = """#!{python}
import pathlib, sys
pid, command, what, file = sys.argv[1:]
with pathlib.Path({calls!r}).open("a") as calls:
    calls.write(f"{{pid}} {{command}} {{what}}\\n")
pathlib.Path(file).write_text("classes")
sys.exit({code})
"""


@pytest.fixture
def java(tmp_path: Path) -> str:
    """A Java, found by a link as in /usr/bin, without tools beside it."""
    home = tmp_path / "java-17"
    for file in ("bin/java", "lib/server/classes.jsa"):
        (home / file).parent.mkdir(parents=True)
        (home / file).touch()
    (tmp_path / "link").symlink_to(home / "bin" / "java")
    return str(tmp_path / "link")


def with_jcmd(java: str, code: int = 0) -> Path:
    """Give that Java a jcmd, which ends with this code; the file with its calls."""
    program = Path(java).resolve().with_name("jcmd")
    calls = program.with_name("calls")
    program.write_text(_JCMD.format(python=sys.executable, calls=str(calls), code=code))
    program.chmod(0o755)
    return calls


def test_the_first_program_writes_what_the_next_ones_use(tmp_path: Path, java: str) -> None:
    """Java is told to be ready to write an archive, or to use the one that is there, which is not written again."""
    calls = with_jcmd(java)
    file = quick.archive(tmp_path, "kafka", java)
    assert quick.use(file, java) == ["-XX:+RecordDynamicDumpInfo"]
    quick.write(file, java, 7)
    assert quick.use(file, java) == [f"-XX:SharedArchiveFile={file}"]
    assert file.read_text() == "classes"
    quick.write(file, java, 8)
    assert calls.read_text().splitlines() == ["7 VM.cds dynamic_dump"]


def test_another_java_has_another_archive(tmp_path: Path, java: str) -> None:
    """Kinds of programs have archives of their own, and so has a Java that was replaced under the same name."""
    file = quick.archive(tmp_path, "kafka", java)
    assert quick.archive(tmp_path, "kafka", java) == file
    assert quick.archive(tmp_path, "hbase", java) != file
    os.utime(java, (1, 1))
    assert quick.archive(tmp_path, "kafka", java) != file


def test_without_jcmd_there_is_no_archive(tmp_path: Path, java: str) -> None:
    """A Java that only runs programs is asked for nothing, and starts as before."""
    file = quick.archive(tmp_path, "kafka", java)
    quick.write(file, java, 7)
    assert quick.use(file, java) == ["-XX:+RecordDynamicDumpInfo"]


def test_an_archive_that_failed_is_not_used(tmp_path: Path, java: str) -> None:
    """What was left by a jcmd that failed is never an archive, and the next program writes a whole one."""
    with_jcmd(java, code=1)
    file = quick.archive(tmp_path, "kafka", java)
    quick.write(file, java, 7)
    assert not file.exists()
    with_jcmd(java)
    quick.write(file, java, 8)
    assert file.exists()


def test_one_writes_and_nobody_waits(tmp_path: Path, java: str) -> None:
    """While one program writes the archive another goes on without it."""
    calls = with_jcmd(java)
    file = quick.archive(tmp_path, "kafka", java)
    with quick.new_archive(file, java) as unfinished:
        assert unfinished is not None
        unfinished.write_text("half")
        quick.write(file, java, 8)
        assert not file.exists()
        with quick.new_archive(file, java) as second:
            assert second is None
    assert file.read_text() == "half"
    assert not calls.exists()


def test_a_program_that_failed_leaves_no_archive(tmp_path: Path, java: str) -> None:
    """Where the block that writes raises, what it wrote is not named as an archive, and the lock is free again."""
    file = quick.archive(tmp_path, "shell", java)

    def fail() -> None:
        with quick.new_archive(file, java) as unfinished:
            assert unfinished is not None
            unfinished.write_text("half")
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()
    assert not file.exists()


def test_a_java_without_classes_of_its_own_is_left_alone(tmp_path: Path, java: str) -> None:
    """A Java that has no archive of its own classes, and would not start if told to add to it, is told nothing."""
    with_jcmd(java)
    (Path(java).resolve().parents[1] / "lib" / "server" / "classes.jsa").unlink()
    file = quick.archive(tmp_path, "kafka", java)
    quick.write(file, java, 7)
    with quick.new_archive(file, java) as unfinished:
        assert (unfinished, quick.use(file, java), quick.use_or_write(file, unfinished)) == (None, [], [])


def test_a_program_writes_when_it_ends(tmp_path: Path, java: str) -> None:
    """A program that runs once is told to write the archive, and the next one to use it."""
    file = quick.archive(tmp_path, "shell", java)
    with quick.new_archive(file, java) as unfinished:
        assert unfinished is not None
        assert quick.use_or_write(file, unfinished) == [f"-XX:ArchiveClassesAtExit={unfinished}"]
        unfinished.write_text("classes")
    with quick.new_archive(file, java) as unfinished:
        assert quick.use_or_write(file, unfinished) == [f"-XX:SharedArchiveFile={file}"]


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path, java: str) -> None:
    """Where no archive can be written a program runs without."""
    (tmp_path / "archives").touch()
    file = quick.archive(tmp_path, "shell", java)
    with quick.new_archive(file, java) as unfinished:
        assert (unfinished, quick.use_or_write(file, unfinished)) == (None, [])
