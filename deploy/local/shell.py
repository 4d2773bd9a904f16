"""The HBase shell: ``python -m deploy.local.shell [--conf FOLDER] ARGUMENT ...`` is ``hbase shell ARGUMENT ...``.

It is run with the configuration in that folder; without one with that of ``make stack-up``. A script comes on standard
input: ``... -n <script.rb``.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.local import fetch, java

_OPENED: Final = ("java.lang", "java.nio", "sun.nio.ch", "java.io", "java.util")
_CONF: Final = "--conf"
_HASTE: Final = "-Dhbase.client.pause=20"
"""The shell waits in steps of this for what it asked for; the servers are near."""


def command(conf: Path, arguments: Sequence[str]) -> list[str]:
    """The command that runs the shell. Raises ``java.MissingTools``."""
    jars = fetch.jars()
    (jruby,) = (jars / "shell").glob("jruby-complete-*.jar")
    ruby = jars / fetch.RUBY
    # JRuby and the server have two versions of one library; the shell needs JRuby's.
    class_path = f"{conf}:{jruby}:{ruby}:{jars / 'hbase'}/*"
    return [
        java.java(),
        "-Xmx384m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        "-cp",
        class_path,
        "org.jruby.Main",
        str(ruby / "jar-bootstrap.rb"),
        *arguments,
    ]


def run(conf: Path, script: str) -> str:
    """Run a script to its end; what it printed. Raises CalledProcessError, which has that too."""
    ran = subprocess.run(  # noqa: S603  # the command is ours
        command(conf, [_HASTE, "-n"]),
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return ran.stdout


def main(arguments: list[str]) -> None:
    """Become the shell."""
    from deploy.local.stack import conf_of_stack  # noqa: PLC0415  # the stack runs the shell too

    conf = Path(arguments[1]) if arguments[:1] == [_CONF] else conf_of_stack()
    become = command(conf, arguments[2:] if arguments[:1] == [_CONF] else arguments)
    os.execv(become[0], become)  # noqa: S606  # there is no shell to be wanted but this one


if __name__ == "__main__":
    main(sys.argv[1:])
