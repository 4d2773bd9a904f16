"""The tables that the script makes, on a real HBase: what lies on the disk, what expires, what is mended."""

import os
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import happybase
import pytest

from deploy.local import shell
from deploy.local.hbase import Hbase, ThriftGateway
from storage.hbase.options import GatewayAddress, StoreAddress
from storage.hbase.schema import DescribedFamily, PrefixLoad, Schema, check, schema_of
from storage.hbase.table_script import render_script

pytestmark = pytest.mark.servers

# HBase's own printer of files, in the Java that runs the shell: each Java more takes two seconds.
_PRINTING: Final = """
Dir.glob('{files}').each do |path|
  puts "PRINTING #{{path}}"
  $stdout.flush
  Java::OrgApacheHadoopHbaseIoHfile::HFilePrettyPrinter.new(settings).run(['-m', '-p', '-f', "file://#{{path}}"].to_java(:string))
end
"""
_TTL_S: Final = 86_400
_SHORT_TTL_S: Final = 2
_SHARES: Final = [PrefixLoad(0, 1), PrefixLoad(1, 1), PrefixLoad(16, 1)]
_REGIONS: Final = 4
_WORKER: Final = os.environ.get("PYTEST_XDIST_WORKER", "main")
_LARGE: Final = random.Random(5).randbytes(60_000)
_SMALL: Final = b"inline"


def place_of(schema: Schema) -> StoreAddress:
    """Where a store with these tables would be."""
    return StoreAddress((GatewayAddress("gateway", 9090),), schema.namespace)


def problems_of(connection: happybase.Connection, schema: Schema) -> list[str]:
    """What a check finds in the tables as they are."""
    return check(schema, place_of(schema), shown(connection, schema))


@dataclass(frozen=True)
class ObservedTables:
    """What was seen while tables were made, written to, broken and mended."""

    hbase: Hbase
    connection: happybase.Connection
    schema: Schema
    short: Schema
    broken: Schema
    first_state: dict[str, Any]
    problems: list[str]
    second_output: str
    described: str
    printed: dict[Path, str]


@pytest.fixture(scope="module")
def observed(hbase_servers: tuple[Hbase, ThriftGateway]) -> Iterator[ObservedTables]:
    """Tables in three namespaces: as they are created; with a short life; one of them recreated by happybase.

    The whole shell starts once: it applies again what was made without it, mends what was broken, makes the tables of a
    short life, describes tables, and has files printed.
    """
    hbase, gateway = hbase_servers
    schema = schema_of(f"made_{_WORKER}", _TTL_S, _SHARES, _REGIONS)
    short = schema_of(f"short_{_WORKER}", _SHORT_TTL_S, regions=2)
    broken = schema_of(f"broken_{_WORKER}", _TTL_S, regions=1)
    shell.make_tables(hbase.conf, "".join(map(render_script, (schema, broken))))
    connection = happybase.Connection("127.0.0.1", gateway.port)
    before = shown(connection, schema) | {"regions": regions(connection, schema)}
    connection.delete_table(broken.articles.name, disable=True)
    connection.create_table(broken.articles.name, {"a": {}})
    problems = problems_of(connection, broken)
    for table, family in (
        (schema.postings, "p"),
        (schema.postings, "s"),
        (schema.articles, "a"),
        (schema.articles, "b"),
    ):
        cells = {f"{family}:small".encode(): _SMALL, f"{family}:large".encode(): _LARGE}
        connection.table(table.name).put(b"\x00\x00\x01", cells)
    again = "".join(map(render_script, (schema, broken)))
    new = render_script(short)
    looks = [f"describe '{table.name}'\n" for table in (*schema.tables, *broken.tables)]
    flushes = [f"flush '{table.name}'\n" for table in schema.tables]
    written = _PRINTING.format(
        files=hbase.folder / "data" / "hbase" / "{data,mobdir/data}" / schema.namespace / "*" / "*" / "?" / "*"
    )
    # The shell may take longer than the minute after which a gateway drops a connection that is idle.
    connection.close()
    output = shell.run(hbase.conf, f"{again}puts 'LOOKING'\n{''.join(looks + flushes)}{written}puts 'PRINTING'\n{new}")
    second_output, _, looked = output.partition("LOOKING\n")
    described, *prints, _ = re.split(r"^PRINTING ?", looked, flags=re.MULTILINE)
    printed = {Path(path): says for path, _, says in (part.partition("\n") for part in prints)}
    connection = happybase.Connection("127.0.0.1", gateway.port)
    yield ObservedTables(hbase, connection, schema, short, broken, before, problems, second_output, described, printed)
    connection.close()


def shown(connection: happybase.Connection, schema: Schema) -> dict[str, Any]:
    """What Thrift shows of the families of each table that is there."""
    names = {name.decode() for name in connection.tables()}
    return {table.name: families(connection, table.name) for table in schema.tables if table.name in names}


def families(connection: happybase.Connection, table: str) -> list[DescribedFamily]:
    """What Thrift shows of a table's families."""
    return [
        DescribedFamily(
            name=family.name.decode(),
            max_versions=family.maxVersions,
            compression=family.compression.decode(),
            in_memory=family.inMemory,
            bloom_filter=family.bloomFilterType.decode(),
            block_cache=family.blockCacheEnabled,
            ttl_s=family.timeToLive,
        )
        for family in connection.client.getColumnDescriptors(table.encode()).values()
    ]


def regions(connection: happybase.Connection, schema: Schema) -> dict[str, list[tuple[bytes, bytes]]]:
    """Each table's regions: where they begin, and their names, which a region has for its life."""
    return {
        table.name: [
            (region.startKey, region.name) for region in connection.client.getTableRegions(table.name.encode())
        ]
        for table in schema.tables
    }


def description(observed: ObservedTables, table: str, family: str) -> str:
    """The line in which the shell describes a family."""
    of_table = observed.described.partition(f"\n{table}, {{TABLE_ATTRIBUTES")[2]
    found = re.search(rf"^{{NAME => '{family}', .*}}$", of_table, re.MULTILINE)
    assert found, observed.described
    return found[0]


def files(observed: ObservedTables, area: str, table: str, family: str) -> list[Path]:
    """The files of a family on the disk, of all regions; ``area`` is where cells are, or large ones."""
    folder = observed.hbase.folder / "data" / "hbase" / area / table.replace(":", "/")
    return sorted(path for path in folder.glob(f"*/{family}/*") if path.is_file())


def test_what_is_made_fits(observed: ObservedTables) -> None:
    """What Thrift shows of new tables passes the check, and regions are cut where the schema cuts them."""
    described = {name: value for name, value in observed.first_state.items() if name != "regions"}
    assert check(observed.schema, place_of(observed.schema), described) == []
    assert problems_of(observed.connection, observed.short) == []
    of_shell = regions(observed.connection, observed.short)
    for table in (*observed.schema.tables, *observed.short.tables):
        assert [start for start, _ in (observed.first_state["regions"] | of_shell)[table.name]] == [b"", *table.splits]
    assert (len(observed.schema.postings.splits), len(observed.short.articles.splits)) == (_REGIONS - 1, 1)


def test_applying_it_again_changes_nothing(observed: ObservedTables) -> None:
    """A second run of the script alters no correct table, and recreates no region."""
    lines = observed.second_output.splitlines()
    altered = [line for line in lines if line.startswith(("creating ", "altering "))]
    assert altered
    assert all(observed.broken.namespace in line for line in altered)
    assert lines.count("The tables are correct.") == 2
    assert regions(observed.connection, observed.schema) == observed.first_state["regions"]


def test_a_table_made_by_another_is_named_and_mended(observed: ObservedTables) -> None:
    """Every differing attribute of a table of happybase's is named with the value it must have; the script fixes it."""
    of_a = [problem for problem in observed.problems if f"{observed.broken.articles.name}, family a: " in problem]
    assert {found[0] for problem in of_a if (found := re.search(r"[A-Z]+ is \S+, but must be \w+", problem))} == {
        "VERSIONS is 3, but must be 1",
        "COMPRESSION is NONE, but must be SNAPPY",
        "BLOOMFILTER is NONE, but must be ROW",
        "BLOCKCACHE is false, but must be true",
    }
    (of_b,) = set(observed.problems) - set(of_a)
    assert f"{observed.broken.articles.name} has no family b" in of_b
    assert all(
        f"dupwatch store init --apply --store hbase://gateway:9090/{observed.broken.namespace}" in m
        for m in observed.problems
    )
    assert problems_of(observed.connection, observed.broken) == []
    assert "NEW_VERSION_BEHAVIOR' => 'true'" in description(observed, observed.broken.articles.name, "a")


@pytest.mark.parametrize(
    ("table", "family"), [("postings", "p"), ("postings", "s"), ("articles", "a"), ("articles", "b")]
)
def test_files_are_compressed_and_encoded(observed: ObservedTables, table: str, family: str) -> None:
    """Every file on the disk says that its blocks are compressed by Snappy and encoded by FAST_DIFF."""
    found = files(observed, "data", f"{observed.schema.namespace}:{table}", family)
    assert found
    for path in found:
        says = observed.printed[path]
        assert "compression=snappy" in says.lower()
        assert re.search(r"DATA_BLOCK_ENCODING\W+FAST_DIFF", says)


@pytest.mark.parametrize(("table", "family"), [("postings", "s"), ("articles", "b")])
def test_large_cells_lie_apart(observed: ObservedTables, table: str, family: str) -> None:
    """A cell above the threshold lies under HBase's folder for large cells, one below does not, and both are read."""
    name = f"{observed.schema.namespace}:{table}"
    # A busy server may flush more than once.
    apart = files(observed, "mobdir/data", name, family)
    assert any(f"{family}:large" in observed.printed[path] for path in apart)
    assert not any(f"{family}:small" in observed.printed[path] for path in apart)
    assert sum(path.stat().st_size for path in apart) > len(_LARGE)
    row = observed.connection.table(name).row(b"\x00\x00\x01", [family.encode()])
    assert row == {f"{family}:large".encode(): _LARGE, f"{family}:small".encode(): _SMALL}


@pytest.mark.parametrize(("table", "family"), [("postings", "p"), ("articles", "a")])
def test_cells_that_are_compared_lie_together(observed: ObservedTables, table: str, family: str) -> None:
    """Families of small cells have nothing in the folder for large ones."""
    assert files(observed, "mobdir/data", f"{observed.schema.namespace}:{table}", family) == []


@pytest.mark.parametrize(
    ("table", "family", "new"), [("postings", "p", True), ("articles", "a", True), ("postings", "s", False)]
)
def test_a_put_counts_after_a_delete_of_its_millisecond(
    observed: ObservedTables,
    table: str,
    family: str,
    new: bool,  # noqa: FBT001  # a parameter
) -> None:
    """With NEW_VERSION_BEHAVIOR a put is seen after a delete with the same timestamp; without it is not."""
    name = f"{observed.schema.namespace}:{table}"
    assert f"'NEW_VERSION_BEHAVIOR' => '{str(new).lower()}'" in description(observed, name, family)
    cells = observed.connection.table(name)
    column, now_ms = f"{family}:again".encode(), int(time.time() * 1000)
    cells.put(b"row", {column: b"1"}, timestamp=now_ms)
    cells.delete(b"row", [column], timestamp=now_ms)
    cells.put(b"row", {column: b"2"}, timestamp=now_ms)
    assert cells.row(b"row", [column]) == ({column: b"2"} if new else {})


def test_cells_expire(observed: ObservedTables) -> None:
    """Postings, versions and bodies are gone when their time is over; what the store is bound to stays."""
    tables = {table.name: observed.connection.table(table.name) for table in observed.short.tables}
    for table in observed.short.tables:
        tables[table.name].put(b"row", {f"{family.name}:c".encode(): b"1" for family in table.families})
    assert all(len(tables[table.name].row(b"row")) == len(table.families) for table in observed.short.tables)
    until = time.monotonic() + 60 * _SHORT_TTL_S
    while any(tables[table.name].row(b"row") for table in (observed.short.postings, observed.short.articles)):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert tables[observed.short.meta.name].row(b"row") == {b"m:c": b"1"}
