"""Cells that dupwatch did not write as they are: each command ends with a sentence and exit code 4, as with LMDB."""

from pathlib import Path
from typing import NamedTuple

import pytest

from storage.hbase import HbaseOptions, parse_place
from storage.hbase.calls import Gateways
from storage.hbase.connection import CellChange, Columns, ScanSelection
from storage.hbase.meta import PackMeta
from tests.cli.command import FAST, run_process, text, write_lines

pytestmark = pytest.mark.servers

GARBAGE = b"\xff\x00garbage"


class Damage(NamedTuple):
    """Cells whose column begins like this get another value, or another column; what reads them, and its error."""

    table: str
    row: bytes | None
    column: bytes
    command: tuple[str, ...]
    says: str
    is_beside: bool = False


DAMAGES = {
    "version": Damage("articles", None, b"a:v", ("show", "a"), "of articles is damaged"),
    "body": Damage("articles", None, b"b:b", ("explain", "a", "b"), "of articles is damaged: the text"),
    "verdict": Damage("articles", None, b"a:v", ("store", "verify"), "of articles is damaged"),
    "width of codes": Damage("meta", b"code_bytes", b"m:v", ("query", "FEED"), "The row code_bytes of meta is damaged"),
    "settings": Damage("meta", b"settings", b"m:v", ("query", "FEED"), "The store was made|the store was created"),
    "fresh posting": Damage("postings", None, b"p:short", ("query", "FEED"), "of postings is damaged", is_beside=True),
    "posting set": Damage("postings", None, b"s:name", ("query", "FEED"), "of postings is damaged", is_beside=True),
}


def cells_of(gateways: Gateways, table: bytes, family: bytes) -> list[tuple[bytes, Columns]]:
    """All rows of a table that have cells of this family."""
    return gateways.calls().scan(ScanSelection(table, [family]), list)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_cell_ends_a_command_with_a_sentence(
    name: str, hbase_address: str, hbase_namespace: str, tmp_path: Path
) -> None:
    """The exit code is 4, the sentence says where the damage is, and no traceback follows."""
    damage, url = DAMAGES[name], f"hbase://{hbase_address}/{hbase_namespace}"
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "a", "body": text(1)}, {"id": "b", "body": text(2)}])
    store = ("--store", url, *FAST)
    assert run_process("run", "--source", feed, "--sink", tmp_path / "out.jsonl", *store).code == 0
    gateways = Gateways(parse_place(url), HbaseOptions())
    table = f"{hbase_namespace}:{damage.table}".encode()
    family = b"p" if damage.is_beside else damage.column[:1]
    changes = [
        CellChange(row, column, GARBAGE)
        for row, columns in cells_of(gateways, table, family)
        if damage.row in (None, row)
        for column in ([damage.column] if damage.is_beside else columns)
        if column.startswith(damage.column)
    ]
    assert changes
    gateways.calls().change(table, changes)
    if damage.column.startswith(b"s:"):
        # As a packer does first: without it nobody expects a set.
        PackMeta(f"{hbase_namespace}:meta".encode()).bind_bucket(gateways.calls(), 1_000)
    gateways.close()
    ended = run_process(*(str(feed) if part == "FEED" else part for part in damage.command), *store)
    assert ended.code == 4, ended.err
    assert any(text in ended.err for text in damage.says.split("|")), ended.err
    assert "Traceback" not in ended.err
