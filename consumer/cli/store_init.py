"""``dupwatch store init``: create or alter the tables of an HBase store, or print the script that does."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from consumer.cli.options import ClusterStoreOption, ConfigOption, SetOption, configured
from consumer.cli.results import results, standard_error, write
from consumer.config.config import Config
from consumer.fingerprint import BlockPlan
from consumer.model.errors import ConfigError, StoreBroken
from consumer.wiring.parts import scheme_of
from storage.hbase import parse_place
from storage.hbase.schema import REGIONS, REGIONS_MAX, Schema, Share, render_script, schema_of

_LANE_SHIFT: Final = 4
_LANE_1: Final = 1
_SHELL_WAIT_S: Final = 600
_OUTPUT_CHARS_MAX: Final = 2000
_DONE: Final = "The tables "
_SCRIPT_LINES: Final = ("creating ", "altering ", _DONE)
"""Beginnings of the lines that the script prints; other lines come from the shell itself."""


def init(
    store: ClusterStoreOption = None,
    print_: Annotated[bool, typer.Option("--print", help="Print the script for the HBase shell.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Run the script with the HBase shell.")] = False,
    shell: Annotated[
        str | None,
        typer.Option(
            envvar="HBASE_SHELL",
            help="Command that runs the HBase shell and reads the script from standard input, for example: "
            "docker exec -i hbase hbase shell. Default: hbase shell.",
            metavar="COMMAND",
        ),
    ] = None,
    regions: Annotated[int, typer.Option(min=1, max=REGIONS_MAX, help="Regions of each new table.")] = REGIONS,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Create the tables of an HBase store, and alter existing tables that differ.

    The TTL follows from judge.window_s and store.slack_s, the region boundaries from judge.plan. The data in the tables
    is never changed, and applying it twice does no harm.
    """
    if print_ == apply:
        raise ConfigError("use either --print, to print the script, or --apply, to run it")
    chosen = configured(config, settings)
    script = render_script(_schema(chosen, store or chosen.store.url, regions))
    if apply:
        output = _applied(_shell_command(shell), script)
        report = "".join(line + "\n" for line in output.splitlines() if line.startswith(_SCRIPT_LINES))
        standard_error().write(report.encode())
    else:
        with results():
            write(script.encode())


def posting_shares(plan: BlockPlan, bands: int) -> list[Share]:
    """Return how the postings of an article spread over the first bytes of their keys."""
    lane_0 = [Share(block, max(plan.parts, 1)) for block in range(plan.blocks)]
    return lane_0 + [Share(_LANE_1 << _LANE_SHIFT | band, 1) for band in range(bands)]


def _schema(config: Config, url: str, regions: int) -> Schema:
    scheme = scheme_of(config)
    try:
        namespace = parse_place(url).namespace
        plan = BlockPlan.named(config.judge.plan, scheme.bits)
        shares = posting_shares(plan, scheme.sketch.bands if config.judge.lane1 else 0)
        return schema_of(namespace, config.lifetime_s, shares, regions)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _shell_command(given: str | None) -> list[str]:
    if given is not None:
        try:
            command = shlex.split(given)
        except ValueError as error:
            raise ConfigError(f"--shell {given}: {error}") from error
        if command:
            return command
    found = shutil.which("hbase")
    if found is None:
        raise ConfigError(
            "no hbase command on the PATH; name the HBase shell with --shell or HBASE_SHELL, or use --print and run "
            "the script where HBase is installed: hbase shell -n <script."
            f"{_local_hint()}"
        )
    return [found, "shell"]


def _local_hint() -> str:
    """Return how to use the shell of the local servers, in a checkout. It is no default: it knows one HBase only."""
    root = Path(__file__).parents[2]
    if not (root / "deploy" / "local" / "shell.py").exists():
        return ""
    command = shlex.join(["env", f"PYTHONPATH={root}", sys.executable, "-m", "deploy.local.shell"])
    return f" For the HBase of make stack-up: --shell {shlex.quote(command)}"


def _applied(command: list[str], script: str) -> str:
    """Run the script and return the output. Raises ``StoreBroken`` with the end of the output if it did not finish."""
    try:
        shell = subprocess.run(  # noqa: S603  # the user's own command
            [*command, "-n"],
            input=script,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SHELL_WAIT_S,
            check=False,
        )
    except OSError as error:
        raise ConfigError(f"cannot run the HBase shell {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise StoreBroken(f"the HBase shell did not finish within {_SHELL_WAIT_S} s") from error
    if shell.returncode or not any(line.startswith(_DONE) for line in shell.stdout.splitlines()):
        raise StoreBroken(
            f"the HBase shell exited with {shell.returncode} before the tables were complete. The end of its output:\n"
            f"{shell.stdout[-_OUTPUT_CHARS_MAX:]}"
        )
    return shell.stdout
