"""How fast a store on HBase is, call by call: python -m benchmarks.hbase_store --store hbase://HOST:PORT/NAMESPACE.

Writes articles that no feed has into the store, so name one that is for measuring. Prints articles a second for each
call, with one compare-and-set under way on a connection and with many, by the number of connections.
"""

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable, Sequence

from storage.hbase import HbaseOptions, StoreAddress, parse_place
from storage.hbase.store import HbaseStore
from storage.records import Record, Version, reference_of

BATCH = 256
BATCHES = 6
CONNECTIONS = (1, 2, 4, 8)
UNDER_WAY = (1, 128)
HOT_ARTICLES = 20_000
BODY = "The ferry came in at dawn, and the harbour was full of people. " * 30


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    place = parse_place(parser.parse_args().store)
    chance = random.Random(time.time_ns())
    print(f"articles a second, median of {BATCHES} batches of {BATCH}; bodies of {len(BODY)} characters")
    print(f"{'connections':>11} {'under way':>9} {'create':>8} {'add':>8} {'settle':>8} {'read':>8}")
    for under_way, connections in itertools.product(UNDER_WAY, CONNECTIONS):
        options = HbaseOptions(connections_max=connections, swaps_under_way_max=under_way)
        figures = calls(place, options, chance)
        print(f"{connections:>11} {under_way:>9} " + " ".join(f"{figure:8,.0f}" for figure in figures))
    for connections in CONNECTIONS:
        look_up(place, HbaseOptions(connections_max=connections), chance)


def calls(place: StoreAddress, options: HbaseOptions, chance: random.Random) -> list[float]:
    """Articles a second of each call."""
    store = HbaseStore.open(place, options)
    warm(store, [version(chance) for _ in range(BATCH)])
    seconds: list[list[float]] = []
    for _ in range(BATCHES):
        versions = [version(chance) for _ in range(BATCH)]
        seconds.append(warm(store, versions))
    store.close()
    return [BATCH / statistics.median(column) for column in zip(*seconds, strict=True)]


def warm(store: HbaseStore, versions: Sequence[Version]) -> list[float]:
    """Seconds of create, add, settle and read."""
    records = [version.record for version in versions]
    verdicts = [(record.reference, b"x" * 400) for record in records]
    works: list[Callable[[], object]] = [
        lambda: store.create(versions),
        lambda: store.add(records),
        lambda: store.settle(verdicts),
        lambda: store.read([record.reference for record in records]),
    ]
    return [timed(work) for work in works]


def look_up(place: StoreAddress, options: HbaseOptions, chance: random.Random) -> None:
    """Rows of 256 articles, 8 keys each, out of rows that hold about as many postings as 10^6 articles make."""
    store = HbaseStore.open(place, options)
    keys = [
        bytes([lane << 4 | number]) + value.to_bytes(2)
        for lane in (0, 1)
        for number in range(4)
        for value in range(256)
    ]
    if options.connections_max == CONNECTIONS[0]:
        for _ in range(HOT_ARTICLES // 1000):
            store.add([hot_record(chance) for _ in range(1000)])
    seconds = [timed(lambda: store.look_up(keys)) for _ in range(BATCHES)]
    postings = sum(len(row.postings) for row in store.look_up(keys))
    took_s = statistics.median(seconds)
    print(
        f"look-up of {len(keys)} rows, {postings:,} postings, {options.connections_max} connections: "
        f"{took_s * 1000:,.0f} ms, {took_s / postings * 1e6:.2f} µs a posting, {BATCH / took_s:,.0f} articles a second"
    )
    store.close()


def version(chance: random.Random) -> Version:
    """A version like the pipeline's, with random fingerprints."""
    return Version(record_of(chance, chance.randbytes(8), chance.randbytes(8)), BODY)


def hot_record(chance: random.Random) -> Record:
    """One whose keys are among those looked up."""
    code, ones = (b"".join(bytes([0, chance.randrange(256)]) for _ in range(4)) for _ in range(2))
    return record_of(chance, code, ones)


def record_of(chance: random.Random, code: bytes, ones: bytes) -> Record:
    """A record with this fingerprint, and bands that are pieces of its one-bit minima."""
    name = chance.randbytes(12).hex()
    keys = [
        bytes([lane << 4 | n]) + bits[2 * n : 2 * n + 2] for lane, bits in enumerate((code, ones)) for n in range(4)
    ]
    return Record(
        reference=reference_of(name, b""),
        id=name,
        time_ms=time.time_ns() // 1_000_000,
        sequence=0,
        scheme="bench/1",
        kind=0,
        fingerprint=code,
        one_bits=ones,
        keys=tuple(keys),
        sketch=chance.randbytes(256),
        text_digest=chance.randbytes(16),
        keywords=tuple((f"keyword{n}", 1.5) for n in range(20)),
    )


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()
