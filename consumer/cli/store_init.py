"""``dupwatch store init``: the tables of an HBase store, as a script or made at once."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from consumer.cli.options import ConfigOption, SetOption, StoreOption, configured
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
_SAID_CHARS: Final = 2000
_DONE: Final = "The tables "
_TOLD: Final = ("creating ", "altering ", _DONE)
"""How lines begin that the script prints; everything else is the shell's own talk."""


def init(
    store: StoreOption = None,
    print_: Annotated[
        bool, typer.Option("--print", help="Write the script for the HBase shell to standard output.")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Run the script with the HBase shell.")] = False,
    shell: Annotated[
        str | None,
        typer.Option(
            envvar="HBASE_SHELL",
            help="The command that runs the HBase shell, for example: docker exec -i hbase hbase shell. "
            "It gets the script on standard input. hbase shell when left out.",
            metavar="COMMAND",
        ),
    ] = None,
    regions: Annotated[
        int, typer.Option(min=1, max=REGIONS_MAX, help="Into how many regions a new table is split.")
    ] = REGIONS,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Make the tables of an HBase store, or alter those that are there where they differ.

    How long cells live follows from judge.window_s and store.slack_s, where regions are cut from judge.plan. Applying
    it again changes nothing, and never touches what lies in the tables.
    """
    if print_ == apply:
        raise ConfigError("say what to do: --print writes the script, --apply runs it")
    chosen = configured(config, settings)
    script = render_script(_schema(chosen, store or chosen.store.url, regions))
    if apply:
        said = _applied(_shell_command(shell), script)
        told = "".join(line + "\n" for line in said.splitlines() if line.startswith(_TOLD))
        standard_error().write(told.encode())
    else:
        with results():
            write(script.encode())


def posting_shares(plan: BlockPlan, bands: int) -> list[Share]:
    """How the postings of an article spread over the first bytes of their keys."""
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
            "there is no hbase on the PATH; name the command with --shell or HBASE_SHELL, "
            "or use --print and run the script where the HBase shell is: hbase shell -n <script."
            f"{_local_hint()}"
        )
    return [found, "shell"]


def _local_hint() -> str:
    """In a checkout: how to run the shell of the local servers. It is never taken unasked: it knows one HBase only."""
    root = Path(__file__).parents[2]
    if not (root / "deploy" / "local" / "shell.py").exists():
        return ""
    command = shlex.join(["env", f"PYTHONPATH={root}", sys.executable, "-m", "deploy.local.shell"])
    return f" For the HBase of make stack-up: --shell {shlex.quote(command)}"


def _applied(command: list[str], script: str) -> str:
    """What the shell printed. Raises ``StoreBroken`` with the end of it where the script came to no end."""
    try:
        ran = subprocess.run(  # noqa: S603  # the user's own command
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
        raise ConfigError(f"the HBase shell cannot be run: {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise StoreBroken(f"the HBase shell did not end within {_SHELL_WAIT_S} s") from error
    if ran.returncode or not any(line.startswith(_DONE) for line in ran.stdout.splitlines()):
        raise StoreBroken(
            f"the HBase shell ended with {ran.returncode} before the tables were as they have to be. The end of what "
            f"it said:\n{ran.stdout[-_SAID_CHARS:]}"
        )
    return ran.stdout
