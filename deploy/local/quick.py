"""Java that starts sooner: what it is told, and archives of the classes that a start loads.

Java writes down the classes that one run has loaded, and later runs take them from there, parsed and linked (class data
sharing). The archives lie beside the jars in the cache, one for each kind of program; the first run that may writes it.
One that does not fit the Java or the jars is passed over by Java. It archives jars alone, and compares class paths from
their beginning as far as it took classes from them: folders come last.
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
    # A third of a start went into compiling what a short life calls a few hundred times.
    "-XX:CompileThresholdScaling=3",
    # Not verifying the classes of known jars saves a quarter of what a start takes.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    # That an archive does not fit is no news, and would stand among what a tool prints.
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
)
"""Compile little and in a hurry, trust the jars."""
_WRITE_WAIT_S: Final = 60.0
_OWN_CLASSES: Final = Path("lib", "server", "classes.jsa")
"""Java's archive of its own classes. Ours are written on top of it: told to do so without it Java does not start."""


def archive(jars: Path, kind: str, java: str) -> Path:
    """Where the archive for programs of this kind lies or will lie. Raises OSError where there is no such Java."""
    program = Path(java).resolve(strict=True)
    found = program.stat()
    fits = hashlib.sha256(repr((OPTIONS, str(program), found.st_size, found.st_mtime_ns)).encode())
    return jars / "archives" / f"{kind}-{fits.hexdigest()[:16]}.jsa"


def use(file: Path, java: str) -> list[str]:
    """What Java is told to start with the archive, or to be ready to write it where there is none yet."""
    if file.exists():
        return [f"-XX:SharedArchiveFile={file}"]
    return ["-XX:+RecordDynamicDumpInfo"] if _can_write(java) else []


def use_or_write(file: Path, unfinished: Path | None) -> list[str]:
    """What Java is told to start with the archive, or to write it when it ends, as ``unwritten`` says."""
    if unfinished:
        return [f"-XX:ArchiveClassesAtExit={unfinished}"]
    return [f"-XX:SharedArchiveFile={file}"] if file.exists() else []


def write(file: Path, java: str, pid: int) -> None:
    """Let a program that runs write the archive where there is none; where it cannot there stays none."""
    jcmd = Path(java).resolve().with_name("jcmd")
    with suppress(OSError, subprocess.SubprocessError), unwritten(file, java) as unfinished:
        if unfinished and jcmd.exists():
            dump = [str(jcmd), str(pid), "VM.cds", "dynamic_dump", str(unfinished)]
            try:
                subprocess.run(dump, check=True, capture_output=True, timeout=_WRITE_WAIT_S, env=environment())  # noqa: S603
            finally:
                # Where Java has heard jcmd. It would stay when the program is killed.
                Path("/tmp", f".java_pid{pid}").unlink(missing_ok=True)  # noqa: S108  # Java's own choice


@contextmanager
def unwritten(file: Path, java: str) -> Iterator[Path | None]:
    """Where to write the archive; None where it is there, is being written, or cannot be.

    What was written gets its name when the block has ended well. Java crashes over a file that is cut short, and so
    never sees an unfinished one.
    """
    if file.exists() or not _can_write(java):
        yield None
        return
    with ExitStack() as held:
        try:
            file.parent.mkdir(exist_ok=True)
            lock = held.enter_context(file.with_suffix(".lock").open("w"))
        except OSError:
            # The jars may lie where only others write; all that is lost is time.
            yield None
            return
        if not _locked(lock) or file.exists():
            yield None
            return
        unfinished = file.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        yield unfinished
        if unfinished.exists():
            unfinished.rename(file)


def _can_write(java: str) -> bool:
    return (Path(java).resolve().parents[1] / _OWN_CLASSES).exists()


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
