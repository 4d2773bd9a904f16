"""Stores with parts or banks, on a real HBase."""

import pytest

from storage.errors import StoreRefused
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.calls import Gateways
from storage.hbase.connection import CellChange
from storage.hbase.meta import LAYOUT_ROW
from storage.hbase.store import HbaseStore

pytestmark = pytest.mark.servers


def test_a_store_with_parts_or_banks_says_so(hbase_address: str, hbase_namespace: str) -> None:
    """From the first opening for writing with them; it does not go back, and another layout is refused."""
    place = parse_place(f"hbase://{hbase_address}/{hbase_namespace}")
    gateways = Gateways(place, HbaseOptions())
    meta = f"{hbase_namespace}:meta".encode()

    def layout() -> bytes:
        found: bytes = gateways.calls().rows(meta, [LAYOUT_ROW], [b"m"], 1)[LAYOUT_ROW][b"m:v"].value
        return found

    for options, expected in (
        (HbaseOptions(), b"1"),
        (HbaseOptions(parts=True, readonly=True), b"1"),
        (HbaseOptions(parts=True), b"2"),
        (HbaseOptions(), b"2"),
        (HbaseOptions(banks=True, readonly=True), b"2"),
        (HbaseOptions(banks=True), b"3"),
        (HbaseOptions(parts=True), b"3"),
    ):
        HbaseStore.open(place, options).close()
        assert layout() == expected
    gateways.calls().change(meta, [CellChange(LAYOUT_ROW, b"m:v", b"4")])
    with pytest.raises(StoreRefused, match="has layout 4; this program supports only layouts 1, 2 and 3"):
        HbaseStore.open(place, HbaseOptions(parts=True))
    gateways.close()
