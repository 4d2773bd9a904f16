"""An HBase and gateways of a measurement's own, and stores in it that were filled once.

With a folder the data stay there for the next measurement, which fills only what is not there yet; without one
everything goes when the measurement ends. The servers end in any case.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from os import getpid, sysconf
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.hbase.load import DAYS, entries_of, fill
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.preload import BANDS
from benchmarks.speed.report import tell
from consumer.cli.operations.store_init import posting_shares
from consumer.fingerprint import BlockPlan
from deploy.local import fetch, java, shell
from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.ports import free_ports
from deploy.local.server import start_together
from storage.hbase.schema import Schema, schema_of
from storage.hbase.table_script import render_script

HEAP_MB: Final = 6144
_GATEWAY_HEAP_MB: Final = 512
_REGIONS: Final = 4
_TTL_S: Final = 30 * 86_400
_TICKS_PER_S: Final = sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12
_COMPACT: Final = """\
connection = Java::OrgApacheHadoopHbaseClient::ConnectionFactory.createConnection(@hbase.configuration)
admin = connection.getAdmin
table = Java::OrgApacheHadoopHbase::TableName.valueOf('{table}')
admin.compactionSwitch(true, [])
admin.flush(table)
admin.majorCompact(table)
sleep 3
sleep 0.5 until admin.getCompactionState(table).to_s == 'NONE'
admin.compactionSwitch(false, [])
connection.close
"""


class RowFormat(NamedTuple):
    """How rows of fresh postings lie in their files: the size of a block, its encoding, and the bloom filter."""

    block_bytes: int
    encoding: str
    bloom: str

    @property
    def name(self) -> str:
        """The format in a word, as part of a namespace."""
        return f"{self.block_bytes // 1024}k_{self.encoding}_{self.bloom}".lower()


class Wanted(NamedTuple):
    """A store to be measured: its plan, how many articles, hot or packed, and how dense (see ``load``).

    Without a format it has that of the schema.
    """

    plan: str
    articles: int
    packed: bool
    density_bits: int = 0
    row_format: RowFormat | None = None

    @property
    def namespace(self) -> str:
        """Where it lies in the HBase."""
        dense = f"_dense{self.density_bits}" if self.density_bits else ""
        formed = f"_{self.row_format.name}" if self.row_format else ""
        return f"m{self.plan}_{self.articles}_{'packed' if self.packed else 'hot'}{dense}{formed}"


class Servers(NamedTuple):
    """What runs."""

    hbase: Hbase
    gateways: tuple[ThriftGateway, ...]

    def url(self, wanted: Wanted) -> str:
        """What ``--store`` would be given."""
        return f"hbase://{','.join(gateway.address for gateway in self.gateways)}/{wanted.namespace}"

    def processor_s(self) -> tuple[float, float]:
        """Processor time so far: of all gateways, and of HBase."""
        gateways = [processor_s(gateway.process.pid) for gateway in self.gateways if gateway.process]
        return sum(gateways), processor_s(self.hbase.process.pid) if self.hbase.process else 0.0


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process has used, in its own code and in the kernel's."""
    # The program's name stands first, in parentheses, and may have anything in it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS_PER_S


@contextmanager
def servers(folder: Path | None, gateways: int = 1, heap_mb: int = HEAP_MB) -> Iterator[Servers]:
    """Run an HBase, and this many gateways, inside the context."""
    with ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dupwatch-bench-")))
        place.mkdir(parents=True, exist_ok=True)
        zookeeper, master, regions, *ports = free_ports(3 + gateways)
        program, jars, owner = java.java(), fetch.jars(), getpid()
        hbase = Hbase(
            folder=place / "hbase",
            zookeeper_port=zookeeper,
            master_port=master,
            region_port=regions,
            heap_mb=heap_mb,
            jars=jars,
            java=program,
            owner=owner,
        )
        ways = tuple(
            ThriftGateway(
                folder=place / f"gateway-{number}",
                port=port,
                zookeeper_port=zookeeper,
                heap_mb=_GATEWAY_HEAP_MB,
                jars=jars,
                java=program,
                owner=owner,
            )
            for number, port in enumerate(ports)
        )
        for server in (hbase, *ways):
            stack.callback(server.stop)
        start_together([hbase, *ways])
        yield Servers(hbase, ways)


def empty_store(running: Servers) -> str:
    """The URL of a store that has nothing in it."""
    wanted = Wanted("4x16", 0, packed=False)
    shell.run(running.hbase.conf, render_script(schema_of(wanted.namespace, _TTL_S, seen_ttl_s=_TTL_S)))
    return running.url(wanted)


def filled(running: Servers, wanted: Wanted) -> str:
    """The URL of this store, which is filled where it is not there yet, and compacted."""
    url = written(running, wanted)
    compact(running, wanted)
    return url


def written(running: Servers, wanted: Wanted) -> str:
    """The URL of this store, which is filled first where it is not there yet, and not compacted."""
    url = running.url(wanted)
    done = running.hbase.folder / f"written-{wanted.namespace}"
    if done.exists():
        return url
    tell(f"filling {wanted.namespace} …")
    plan = BlockPlan.named(wanted.plan)
    make_tables(running, wanted)
    entries = entries_of(model_of_texts(), wanted.articles, density_bits=wanted.density_bits)
    for _ in fill(url, plan, entries, DAYS if wanted.packed else 0):
        pass
    done.touch()
    return url


def make_tables(running: Servers, wanted: Wanted) -> None:
    """Create the tables of this store."""
    shell.run(running.hbase.conf, render_script(_schema_of(wanted, BlockPlan.named(wanted.plan))))


def compact(running: Servers, wanted: Wanted, tables: Sequence[str] = ("postings",)) -> None:
    """Write these tables of a store into one file for each region and family, and compact nothing from then on.

    A compaction in the middle of a measurement takes as much of the server as the articles do.
    """
    tell(f"compacting {wanted.namespace} …")
    for table in tables:
        shell.run(running.hbase.conf, _COMPACT.format(table=f"{wanted.namespace}:{table}"))


def _schema_of(wanted: Wanted, plan: BlockPlan) -> Schema:
    schema = schema_of(wanted.namespace, _TTL_S, posting_shares(plan, BANDS), _REGIONS, seen_ttl_s=_TTL_S)
    if wanted.row_format is None:
        return schema
    block_bytes, encoding, bloom = wanted.row_format
    fresh, *others = schema.postings.families
    formed = replace(fresh, block_bytes=block_bytes, encoding=encoding, bloom=bloom)
    return replace(schema, postings=replace(schema.postings, families=(formed, *others)))
