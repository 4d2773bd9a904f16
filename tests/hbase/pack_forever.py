"""A process that packs again and again, until it is killed."""

from multiprocessing.connection import Connection

from tests.hbase import packed_rows


def pack_forever(url: str, bucket_ms: int, pipe: Connection) -> None:
    """Pack a store, and say when that begins."""
    store = packed_rows.opened(url)
    pipe.send("begun")
    while True:
        packed_rows.pack(store, bucket_ms)
