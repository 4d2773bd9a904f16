"""The HBase shell: ``python -m deploy.local.shell [--conf FOLDER] ARGUMENT ...`` is ``hbase shell ARGUMENT ...``.

It uses the configuration in that folder, by default that of ``make stack-up``. Scripts are read from standard input:
``... -n <script.rb``.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.local import fetch, java, quick

_OPENED: Final = ("java.lang", "java.nio", "sun.nio.ch", "java.io", "java.util")
_CONF: Final = "--conf"
_CLIENT_PAUSE: Final = "hbase.client.pause=20"
"""The shell waits for results in steps of this many milliseconds, which are few because the servers are local."""
_TABLES: Final = Path(__file__).with_name("tables.rb")


def command(conf: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs the shell.

    Raises ``MissingTools`` and ``CalledProcessError``, as ``fetch.jars`` does.
    """
    return ruby(conf, _shell(arguments))


def run(conf: Path, script: str) -> str:
    """Run a script and return its output.

    Raises ``CalledProcessError``, which has the output too, and the errors of ``command``.
    """
    return _run(conf, _shell([f"-D{_CLIENT_PAUSE}", "-n"]), script)


def make_tables(conf: Path, script: str) -> str:
    """Like ``run``, for a script that only creates tables, in less than half the time."""
    return _run(conf, ["--disable-gems", str(_TABLES), _CLIENT_PAUSE], script)


def ruby(conf: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs Ruby with HBase's classes. Raises the errors of ``command``."""
    program = java.java()
    return _ruby(program, conf, arguments, quick.use_or_write(_archive(program), None))


def _run(conf: Path, ruby: Sequence[str], script: str) -> str:
    program = java.java()
    archive = _archive(program)
    with quick.new_archive(archive, program) as unfinished:
        ran = subprocess.run(  # noqa: S603  # the command is ours
            _ruby(program, conf, ruby, quick.use_or_write(archive, unfinished)),
            input=script,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
            env=java.environment(),
        )
    return ran.stdout


def _ruby(program: str, conf: Path, ruby: Sequence[str], options: Sequence[str]) -> list[str]:
    jars = fetch.jars()
    (jruby,) = (jars / "shell").glob("jruby-complete-*.jar")
    return [
        program,
        "-Xmx384m",
        "-XX:+UseSerialGC",
        *quick.OPTIONS,
        *options,
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        "-cp",
        # JRuby and the server have two versions of one library; the shell needs JRuby's.
        f"{jruby}:{jars / 'hbase'}/*:{jars / fetch.RUBY}:{conf}",
        "org.jruby.Main",
        *ruby,
    ]


def _shell(arguments: Sequence[str]) -> list[str]:
    return [str(fetch.jars() / fetch.RUBY / "jar-bootstrap.rb"), *arguments]


def _archive(program: str) -> Path:
    return quick.archive(fetch.jars(), "shell", program)


def main(arguments: list[str]) -> None:
    """Replace this process with the shell."""
    from deploy.local.stack import conf_of_stack  # noqa: PLC0415  # the stack runs the shell too

    conf = Path(arguments[1]) if arguments[:1] == [_CONF] else conf_of_stack()
    become = command(conf, arguments[2:] if arguments[:1] == [_CONF] else arguments)
    os.execv(become[0], become)  # noqa: S606  # no other shell is needed


if __name__ == "__main__":
    main(sys.argv[1:])
