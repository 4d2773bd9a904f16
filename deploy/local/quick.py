"""Makes Java start faster: options, and archives of the classes that a start loads.

Java can save the classes that one run has loaded, and later runs load them parsed and linked (class data sharing). The
archives are next to the jars in the cache, one for each kind of program and each Java. The first run that can write one
does so. Java ignores an archive that does not match its version or the jars. It archives classes from jars only, and
compares class paths from the beginning up to the last entry that it took classes from, so folders come last.
"""

import fcntl
import hashlib
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from deploy.local.java import environment

OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1",
    # A third of the start was spent on compiling code that a short run calls a few hundred times.
    "-XX:CompileThresholdScaling=3",
    # Not verifying the classes of known jars saves a quarter of the start.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    # Messages about archives that do not match would be mixed with a tool's output.
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
)
"""Compile less, and trust the jars."""
_WRITE_WAIT_S: Final = 60.0
_OWN_CLASSES: Final = Path("lib", "server", "classes.jsa")
"""Java's archive of its own classes, which our archives extend.

Without it Java would not start with the options for archives.
"""


def archive(jars: Path, kind: str, java: str) -> Path:
    """Return the path of the archive for programs of this kind. Raises ``OSError`` if there is no such Java."""
    program = Path(java).resolve(strict=True)
    found = program.stat()
    digest = hashlib.sha256(repr((OPTIONS, str(program), found.st_size, found.st_mtime_ns)).encode())
    return jars / "archives" / f"{kind}-{digest.hexdigest()[:16]}.jsa"


def use(file: Path, java: str) -> list[str]:
    """Return Java's options to use the archive, or if there is none, to be able to write it; [] if Java cannot."""
    if file.exists():
        return [f"-XX:SharedArchiveFile={file}"]
    return ["-XX:+RecordDynamicDumpInfo"] if _can_write(java) else []


def use_or_write(file: Path, unfinished: Path | None) -> list[str]:
    """Return Java's options to write the archive to ``unfinished`` when Java ends; if that is None, to use the archive.

    Returns no options if ``unfinished`` is None and there is no archive.
    """
    if unfinished:
        return [f"-XX:ArchiveClassesAtExit={unfinished}"]
    return [f"-XX:SharedArchiveFile={file}"] if file.exists() else []


def write(file: Path, java: str, pid: int) -> None:
    """Let a running program write the archive if there is none; failures are ignored."""
    jcmd = Path(java).resolve().with_name("jcmd")
    with suppress(OSError, subprocess.SubprocessError), new_archive(file, java) as unfinished:
        if unfinished and jcmd.exists():
            dump = [str(jcmd), str(pid), "VM.cds", "dynamic_dump", str(unfinished)]
            try:
                subprocess.run(dump, check=True, capture_output=True, timeout=_WRITE_WAIT_S, env=environment())  # noqa: S603
            finally:
                # Java's socket for jcmd, which would remain if the program is killed.
                Path("/tmp", f".java_pid{pid}").unlink(missing_ok=True)  # noqa: S108  # Java's own choice


@contextmanager
def new_archive(file: Path, java: str) -> Iterator[Path | None]:
    """Yield the path to write the archive to; None if the archive exists, is being written, or cannot be written.

    The file gets its name when the block has succeeded: Java crashes on a truncated archive, so it must never see one.
    """
    if file.exists() or not _can_write(java):
        yield None
        return
    with ExitStack() as held:
        try:
            file.parent.mkdir(exist_ok=True)
            lock = held.enter_context(file.with_suffix(".lock").open("w"))
        except OSError:
            # The folder of the jars may be read-only; that only costs time.
            yield None
            return
        if not _try_lock(lock) or file.exists():
            yield None
            return
        unfinished = file.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        yield unfinished
        if unfinished.exists():
            unfinished.rename(file)


def _can_write(java: str) -> bool:
    return (Path(java).resolve().parents[1] / _OWN_CLASSES).exists()


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
