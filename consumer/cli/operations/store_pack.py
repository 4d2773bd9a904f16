"""``dupwatch store pack`` and ``unpack``: turn older postings of an HBase store into posting sets, and back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.table import Table

from consumer.cli import render
from consumer.cli.operations.store_init import posting_shares
from consumer.cli.options import ClusterStoreOption, ConfigOption, JsonOption, SetOption, command_config
from consumer.cli.results import answer
from consumer.config.config import Config
from consumer.fingerprint import BlockPlan
from consumer.model.errors import ConfigError
from consumer.text.timestamps import TIME_HELP, option_time_ms
from consumer.wiring.components import scheme_of
from consumer.wiring.stores import opened_store
from storage.clock import MS_PER_S
from storage.hbase.kind import HBASE
from storage.hbase.packing import BUCKET_S, ROW_POSTINGS_MIN, Packer, PackOptions, UnpackProgress
from storage.hbase.schema import PrefixLoad
from storage.hbase.set_plans import PackTally
from storage.hbase.store import HbaseStore
from storage.kinds import kind_of

_VALUES = 1 << 16
_MIB = 1 << 20


def pack(
    store: ClusterStoreOption = None,
    before: Annotated[
        str | None,
        typer.Option(
            help=f"Pack postings written before this time: {TIME_HELP}; default: now. A bucket is packed if it "
            "ended a minute before this time; a bucket shorter than a minute, its own length before.",
            metavar="TIME",
        ),
    ] = None,
    bucket_s: Annotated[
        int,
        typer.Option(min=1, help="Seconds per bucket; postings of a bucket are packed together and expire together."),
    ] = BUCKET_S,
    row_postings_min: Annotated[
        int, typer.Option(min=1, help="Pack only rows with at least this many postings in a bucket.")
    ] = ROW_POSTINGS_MIN,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Pack older postings of an HBase store into compressed sets, which are several times faster to read.

    Consumers and other packers may be running. You can stop or kill the command at any time; a rerun resumes where it
    stopped. Run it once per bucket, for example from cron.
    """
    chosen = command_config(config, overrides, store__url=store)
    options = PackOptions(
        None if before is None else option_time_ms("--before", before), bucket_s * MS_PER_S, row_postings_min
    )
    shares = _shares(chosen)
    tally = PackTally()
    with _packer(chosen) as packer, render.progress(render.console(stderr=True)) as bar:
        task = bar.add_task("packing", total=1.0)
        for done in packer.pack(options):
            tally = done.tally
            bar.update(task, completed=share_before(done.row, shares))
    answer(json=json, lines=[tally._asdict()], text=[_packed_table(tally)])


def unpack(
    store: ClusterStoreOption = None, json: JsonOption = False, config: ConfigOption = None, overrides: SetOption = None
) -> None:
    """Turn all posting sets of an HBase store back into single postings, as they were before packing."""
    chosen = command_config(config, overrides, store__url=store)
    shares = _shares(chosen)
    done = UnpackProgress(0, 0, None)
    with _packer(chosen) as packer, render.progress(render.console(stderr=True)) as bar:
        task = bar.add_task("unpacking", total=1.0)
        for done in packer.unpack():
            bar.update(task, completed=share_before(done.row, shares))
    counts = {"sets": done.sets, "postings": done.postings}
    answer(json=json, lines=[counts], text=[render.value_table("Unpacked", counts.items())])


def share_before(key: bytes | None, shares: Sequence[PrefixLoad]) -> float:
    """Return the share of all postings before a key, as a measure of progress. None means the end, and returns 1."""
    total = sum(share.postings for share in shares)
    if key is None or not total:
        return 1.0
    before = sum(share.postings for share in shares if share.first_byte < key[0]) if key else 0
    within = sum(share.postings for share in shares if key[:1] == bytes([share.first_byte]))
    return (before + within * int.from_bytes(key[1:3].ljust(2, b"\0"), "big") / _VALUES) / total


@contextmanager
def _packer(config: Config) -> Iterator[Packer]:
    if kind_of(config.store.url) is not HBASE:
        raise ConfigError(
            f"{config.store.url} has no posting sets: only HBase stores have them; "
            f"name one with --store {HBASE.example}"
        )
    with opened_store(config) as opened:
        if not isinstance(opened, HbaseStore):
            raise TypeError(f"{config.store.url} was opened as {type(opened)}, which is not an HBase store")
        yield opened.packer()


def _shares(config: Config) -> list[PrefixLoad]:
    """Return the distribution of postings with the configured plan.

    If the store has another plan, only the progress bar is wrong.
    """
    scheme = scheme_of(config)
    try:
        plan = BlockPlan.named(config.judge.plan, scheme.bits)
    except ValueError as error:
        raise ConfigError(f"judge: {error}") from error
    return posting_shares(plan, scheme.sketch.bands if config.judge.lane1 else 0, parts=config.judge.parts)


def _packed_table(tally: PackTally) -> Table:
    rows: dict[str, str | int] = {
        "rows scanned": tally.rows,
        "postings packed": tally.postings,
        "sets written": tally.written,
        "old sets merged": tally.merged,
        "sets expired": tally.expired,
        "size before": f"{tally.bytes_before / _MIB:,.1f} MiB",
        "size after": f"{tally.bytes_after / _MIB:,.1f} MiB",
    }
    return render.value_table("Packed", rows.items())
