"""The servers' jars, by Maven coordinates, in a cache outside of the tree: ``python -m deploy.local.fetch``.

The cache's name has a digest of the pom files, so another set of versions is another folder. A folder is made under
another name and renamed when it is whole: a half-fetched one is never used. A lock lets one process fetch while the
others wait. ``MVN_ARGS`` has further arguments for Maven (a mirror's settings, ``--offline``). Run
as a program it installs Java and Maven where they are missing and it may.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from deploy.local.java import MissingTools, install, java, maven

PARTS: Final = ("kafka", "hbase", "shell")
"""Each a pom file, and a folder of jars in the cache."""
RUBY: Final = "ruby"
"""The folder of the HBase shell's Ruby files."""
_POMS: Final = Path(__file__).with_name("poms")
_SHELL_JAR: Final = "hbase-shell-*.jar"
# The shell's tracing command names a class that later servers do not bring along, and all commands are loaded at once.
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
"""Counts up where what is done with the jars changes."""


def home() -> Path:
    """Where all that is kept for this user: ``$XDG_CACHE_HOME/dupwatch``, else ``~/.cache/dupwatch``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dupwatch"


def jars() -> Path:
    """The folder of the servers' jars, fetched where it is not there yet.

    Raises ``java.MissingTools`` without Maven, and CalledProcessError where Maven fails.
    """
    digest = hashlib.sha256(_FORMAT)
    for part in PARTS:
        digest.update(_pom(part).read_bytes())
    folder = home() / f"servers-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder)
    return folder


def _pom(part: str) -> Path:
    return _POMS / f"{part}.xml"


def _fetch(folder: Path) -> None:
    command = [maven(), "--quiet", "--batch-mode", *shlex.split(os.environ.get("MVN_ARGS", ""))]
    sys.stderr.write("Fetching Kafka and HBase (once, 190 MB) ...\n")
    unfinished = Path(mkdtemp(dir=folder.parent, prefix=f"{folder.name}.unfinished-"))
    try:
        for part in PARTS:
            copy = ["dependency:copy-dependencies", f"-DoutputDirectory={unfinished / part}", "-DincludeScope=runtime"]
            # What Maven prints belongs to a person, not into what our caller prints.
            subprocess.run([*command, "-f", str(_pom(part)), *copy], check=True, stdout=sys.stderr)  # noqa: S603  # ours
        _unpack_shell(unfinished)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _unpack_shell(folder: Path) -> None:
    """Take the shell's Ruby files out of their jar: one of them is replaced."""
    (jar,) = (folder / "shell").glob(_SHELL_JAR)
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(folder / RUBY)
    jar.unlink()
    (folder / RUBY / "shell" / "commands" / "trace.rb").write_text(_TRACE)


def main() -> int:
    """Have all that servers need; the exit code."""
    try:
        try:
            tools = (java(), maven())
        except MissingTools:
            if not install():
                raise
            tools = (java(), maven())
        sys.stdout.write(f"{jars()}\n")
    except MissingTools as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(
            f"{tools[1]} could not fetch Kafka and HBase (exit code {error.returncode}); it says why above.\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
