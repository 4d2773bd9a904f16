"""Downloads the servers' jars, by Maven coordinates, into a cache outside the tree: ``python -m deploy.local.fetch``.

The jars of Kafka Connect have a folder of their own, which only the tests of the recipes need. The name of a folder
contains a digest of the pom files, so that another set of versions gets another folder. It is created under another
name and renamed when it is complete. A lock lets one process download while others wait.
``MVN_ARGS`` has further arguments for Maven (a mirror's settings, ``--offline``). As a program it also installs missing
tools if that is allowed: Java, Maven, PostgreSQL and other commands of the tests. With ``--servers-only`` it installs
only Java and Maven.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from deploy.local import postgres
from deploy.local.java import install, java, maven
from deploy.local.packages import MissingTools, apt_install, check, missing_commands, packages_of

PARTS: Final = ("kafka", "hbase", "shell")
"""Each has a pom file, and a folder of jars in the cache."""
CONNECT: Final = "connect"
"""The part of Kafka Connect, its file connectors and Debezium's connector for PostgreSQL."""
RUBY: Final = "ruby"
"""The folder of the HBase shell's Ruby files."""
_POMS: Final = Path(__file__).with_name("poms")
_SHELL_JAR: Final = "hbase-shell-*.jar"
# The shell's tracing command names a class that later servers lack, and all commands are loaded at once.
_TRACE: Final = """\
module Shell
  module Commands
    class Trace < Command
      def help
        'There is no tracing here.'
      end

      def command(*)
        puts help
      end
    end
  end
end
"""
_FORMAT: Final = b"1"
"""Incremented whenever the processing of the jars changes, so that they are processed again."""


def home() -> Path:
    """Return the cache of this user: ``$XDG_CACHE_HOME/dupwatch``, or ``~/.cache/dupwatch``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dupwatch"


def jars() -> Path:
    """Return the folder of the servers' jars; download them if it does not exist.

    Raises ``MissingTools`` without Maven, and ``CalledProcessError`` if Maven fails.
    """
    return _jars("servers", PARTS, "Kafka and HBase (once, 190 MB)")


def connect_jars() -> Path:
    """Return the folder of Kafka Connect's jars; download them if it does not exist. Raises as ``jars`` does."""
    return _jars("connect", (CONNECT,), "Kafka Connect (once, 38 MB)")


def _jars(name: str, parts: Sequence[str], what: str) -> Path:
    digest = hashlib.sha256(_FORMAT)
    for part in parts:
        digest.update(_pom(part).read_bytes())
    folder = home() / f"{name}-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder, parts, what)
    return folder


def _pom(part: str) -> Path:
    return _POMS / f"{part}.xml"


def _fetch(folder: Path, parts: Sequence[str], what: str) -> None:
    command = [maven(), "--quiet", "--batch-mode", *shlex.split(os.environ.get("MVN_ARGS", ""))]
    sys.stderr.write(f"Downloading {what} ...\n")
    unfinished = Path(mkdtemp(dir=folder.parent, prefix=f"{folder.name}.unfinished-"))
    try:
        for part in parts:
            copy = ["dependency:copy-dependencies", f"-DoutputDirectory={unfinished / part}", "-DincludeScope=runtime"]
            # Maven's output is for a person; standard output is our result.
            subprocess.run([*command, "-f", str(_pom(part)), *copy], check=True, stdout=sys.stderr)  # noqa: S603  # ours
        if "shell" in parts:
            _unpack_shell(unfinished)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _unpack_shell(folder: Path) -> None:
    """Extract the shell's Ruby files from their jar, and replace one of them."""
    (jar,) = (folder / "shell").glob(_SHELL_JAR)
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(folder / RUBY)
    jar.unlink()
    (folder / RUBY / "shell" / "commands" / "trace.rb").write_text(_TRACE)


def main(arguments: Sequence[str]) -> int:
    """Provide what the servers and, unless told otherwise, most tests need; return the exit code."""
    try:
        _provide_tools(servers_only="--servers-only" in arguments)
        tool = maven()
        sys.stdout.write(f"{jars()}\n")
    except MissingTools as lacking:
        sys.stderr.write(f"{lacking}\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(
            f"{tool} could not download Kafka and HBase (exit code {error.returncode}); see its messages above.\n"
        )
        return 1
    return 0


def _provide_tools(*, servers_only: bool) -> None:
    """Install missing tools. Raises ``MissingTools``, which names all that are still missing."""
    wanted: list[Callable[[], object]] = [java, maven]
    if _lacks(wanted):
        install()
    if not servers_only:
        wanted[:0] = [check, postgres.programs]
        packages = packages_of(missing_commands())
        if _lacks([postgres.programs]):
            packages.append(postgres.PACKAGE)
        if packages:
            apt_install(*packages)
    reasons = _lacks(wanted)
    if reasons:
        raise MissingTools("; ".join(dict.fromkeys(reasons)))


def _lacks(wanted: Sequence[Callable[[], object]]) -> list[str]:
    reasons = []
    for find in wanted:
        try:
            find()
        except MissingTools as lacking:
            reasons.append(str(lacking))
    return reasons


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
