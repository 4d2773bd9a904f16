"""``dupwatch store init``: plan a store, and create the tables of an HBase store or print their script."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

import consumer
from consumer.cli.options import ConfigOption, LastingStoreOption, SetOption, command_config
from consumer.cli.results import results, standard_error, write
from consumer.config.config import Config
from consumer.fingerprint import ANCHORS_POSTED, BlockPlan
from consumer.model.errors import ConfigError, StoreBroken
from consumer.store_tools.sizing import CHARS, GB, TableBytes, table_bytes
from consumer.store_tools.sizing_report import span
from consumer.store_tools.store_plan import ARTICLES_MAX, StorePlan, store_plan
from consumer.store_tools.text_sizes import assumed_sizes
from consumer.text.counts import counted
from consumer.wiring.components import scheme_of
from consumer.wiring.stores import other_plan, record_plan
from storage.hbase import parse_place
from storage.hbase.kind import HBASE
from storage.hbase.schema import (
    REGION_BYTES,
    REGIONS,
    REGIONS_MAX,
    PrefixLoad,
    Schema,
    regions_for,
    schema_of,
)
from storage.hbase.table_script import REFUSED, render_script
from storage.kinds import kind_of
from storage.postings import LANE_PARTS

_LANE_SHIFT: Final = 4
_LANE_1: Final = 1
_SHELL_WAIT_S: Final = 600
_OUTPUT_CHARS_MAX: Final = 2000
_DONE: Final = "The tables "
_SCRIPT_LINES: Final = ("creating ", "altering ", "recording ", _DONE)
"""Beginnings of the lines that the script prints; the shell itself prints other lines."""
_SPLITS_SHOWN_MAX: Final = 16


def init(
    store: LastingStoreOption = None,
    articles: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=ARTICLES_MAX,
            help="Articles expected in the window: chooses plan and regions, and records plan and number in the store. "
            "Without --print or --apply, only shows the choice.",
        ),
    ] = None,
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
    regions: Annotated[
        int | None,
        typer.Option(
            min=1, max=REGIONS_MAX, help=f"Regions of each new table. Default: {REGIONS}, more with --articles."
        ),
    ] = None,
    servers: Annotated[
        int, typer.Option(min=1, max=REGIONS_MAX, help="With --articles: region servers; at least one region for each.")
    ] = 1,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Create the tables of an HBase store, and alter existing tables that differ.

    The TTL follows from judge.window_s and store.slack_s, and the region boundaries from the plan. The data in the
    tables is never changed, and applying the script twice does no harm.

    With --articles the store is made for a plan, and consumers with another judge.plan are refused. An lmdb: store has
    no tables; --apply creates it with its plan.
    """
    if print_ == apply and (print_ or articles is None):
        raise ConfigError(
            "add --print, to print the script for the HBase shell, or --apply, to run it; to plan a store, add "
            "--articles"
        )
    chosen = command_config(config, overrides, store__url=store)
    plan = None if articles is None else _plan(chosen, articles)
    if kind_of(chosen.store.url) is HBASE or plan is None:
        schema, lines = _tables(chosen, plan, regions, servers)
        script = render_script(schema, None if plan is None else plan.planned, lines)
        if apply:
            # Look for the shell first: without a shell, the plan is not shown, because it cannot be applied.
            command = _shell_command(shell)
            _print_messages(lines)
            output = _run_script(command, script).splitlines()
            _print_messages([line for line in output if line.startswith(_SCRIPT_LINES)])
            return
        with results():
            write(script.encode() if print_ else _text(lines))
        return
    lines = [*plan_lines(plan), *closing_lines(plan)]
    if apply:
        record_plan(chosen, plan.planned)
        _print_messages([*lines, f"{chosen.store.url} is made for the plan {plan.plan.name}."])
        return
    with results():
        write(_text(lines))


def posting_shares(plan: BlockPlan, bands: int, *, parts: bool = False) -> list[PrefixLoad]:
    """Return the distribution of an article's postings over the first bytes of their keys."""
    lane_0 = [PrefixLoad(block, max(plan.parts, 1)) for block in range(plan.blocks)]
    lane_1 = [PrefixLoad(_LANE_1 << _LANE_SHIFT | band, 1) for band in range(bands)]
    return lane_0 + lane_1 + ([PrefixLoad(LANE_PARTS << _LANE_SHIFT, ANCHORS_POSTED)] if parts else [])


def _plan(config: Config, articles: int) -> StorePlan:
    try:
        return store_plan(config, scheme_of(config), articles, remote=kind_of(config.store.url).remote)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _tables(config: Config, plan: StorePlan | None, regions: int | None, servers: int) -> tuple[Schema, list[str]]:
    """Return the tables of a store, and lines that explain them; no lines without a plan."""
    scheme = scheme_of(config)
    bands = scheme.sketch.bands if config.judge.lane1 else 0
    try:
        namespace = parse_place(config.store.url).namespace
        if plan is None:
            shares = posting_shares(BlockPlan.named(config.judge.plan, scheme.bits), bands, parts=config.judge.parts)
            schema = schema_of(namespace, config.lifetime_s, shares, regions or REGIONS, seen_ttl_s=config.seen_s)
            return schema, []
        # For articles of other lengths, ``dupwatch size`` computes the regions.
        texts = assumed_sizes(CHARS, "zh")
        keep_bodies, parts = config.store.keep_bodies, config.judge.parts
        sizes = table_bytes(plan.kept, texts, plan, keep_bodies=keep_bodies, parts=parts)
        of_postings, of_articles = (regions or regions_for(size, servers) for size in sizes)
        schema = schema_of(
            namespace,
            config.lifetime_s,
            posting_shares(plan.plan, bands, parts=parts),
            of_postings,
            article_regions=of_articles,
            seen_ttl_s=config.seen_s,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return schema, [*plan_lines(plan), *table_lines(plan, sizes, schema), *closing_lines(plan)]


def _print_messages(lines: Sequence[str]) -> None:
    standard_error().write(_text(lines))


def _text(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


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
    """Return a sentence on the shell of the local servers, or "" outside a checkout.

    That shell is not the default, since it reaches only the local HBase.
    """
    root = Path(consumer.__file__ or "").parents[1]
    if not (root / "deploy" / "local" / "shell.py").exists():
        return ""
    command = shlex.join(["env", f"PYTHONPATH={root}", sys.executable, "-m", "deploy.local.shell"])
    return f" For the HBase of make stack-up: --shell {shlex.quote(command)}"


def _run_script(command: list[str], script: str) -> str:
    """Run the script with the HBase shell, and return the output.

    Raises ``ConfigError`` if the shell cannot be started, ``StoreBroken`` if the script failed or took too long, and
    ``StoreMismatch`` if the store has another plan.
    """
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
    for line in shell.stdout.splitlines():
        if line.startswith(REFUSED):
            raise other_plan(line.removeprefix(REFUSED))
    if shell.returncode or not any(line.startswith(_DONE) for line in shell.stdout.splitlines()):
        raise StoreBroken(
            f"the HBase shell exited with {shell.returncode} before the tables were complete. The end of its output:\n"
            f"{shell.stdout[-_OUTPUT_CHARS_MAX:]}"
        )
    return shell.stdout


def plan_lines(plan: StorePlan) -> Iterator[str]:
    """Yield the plan, the reason for it, and the cost of an article with it."""
    yield f"For {plan.articles:,} articles in the window of {span(plan.window_s)}:"
    yield f"  plan      {plan.plan.name}: {plan.reason}"
    yield (
        f"  look-up   reads {counted(plan.rows, 'row')} with about {plan.cost}; a kept article writes"
        f" {counted(plan.postings, 'posting')}"
    )


def table_lines(plan: StorePlan, sizes: TableBytes, schema: Schema) -> Iterator[str]:
    """Yield the size of the tables and the keys at which they are split."""
    postings, articles = schema.postings.splits, schema.articles.splits
    yield (
        f"  size      {plan.kept:,} articles with the slack: postings {_gigabytes(sizes.postings)}, articles"
        f" {_gigabytes(sizes.articles)} (texts of {CHARS:,} characters), before HDFS replicates them"
    )
    yield (
        f"  regions   postings {len(postings) + 1}, articles {len(articles) + 1}: by default one for each"
        f" {REGION_BYTES // GB} GB, at least {REGIONS}"
    )
    yield f"  cuts      postings: {_splits_text(postings)}"
    yield f"            articles: {_splits_text(articles)}"


def closing_lines(plan: StorePlan) -> Iterator[str]:
    """Yield the settings that consumers need, and the source of the limits."""
    if plan.configured != plan.plan.name:
        yield f"  settings  consumers without judge.plan use {plan.plan.name}; consumers with another plan are refused"
    yield "The limits were measured on one machine (docs/operate/sizing.md)."


def _splits_text(splits: Sequence[bytes]) -> str:
    shown = " ".join(split.hex() for split in splits[:_SPLITS_SHOWN_MAX])
    more = len(splits) - _SPLITS_SHOWN_MAX
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / GB:,.1f} GB"
