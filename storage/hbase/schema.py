r"""The definition of the tables, used by the script that creates them and by the checks of an opened store.

::

    NAMESPACE:postings   p  one cell for each posting          s  posting sets; large cells apart (MOB)
    NAMESPACE:articles   a  versions, verdicts, tombstones     b  bodies; large cells apart (MOB)
    NAMESPACE:seen       t  texts remembered beyond the window; only if judge.seen_days is set
    NAMESPACE:meta       m  facts about the store, such as its settings; never expires

docs/operate/row_keys.md describes the contents of cells. Thrift cannot create these tables, since it supports neither
block encoding, nor MOB, nor splits. So a script for the HBase shell creates them (``table_script``), and a store checks
the attributes that Thrift shows.

Tables are split into regions when they are created, so that all servers share the writes from the first hour on. The
key of a posting is the byte ``lane << 4 | number``, followed by a practically uniform value. So the numbers of postings
that an article has under each first byte tell where to split the load evenly. Nothing here does I/O.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from storage.hbase.options import StoreAddress

FOREVER_S: Final = 2**31 - 1
"""HBase's time to live of cells that never expire."""
REGIONS: Final = 16
"""The default number of regions into which postings and articles are split."""
REGIONS_MAX: Final = 4096
BLOCK_BYTES: Final = 65_536
"""HBase's default size of a block, before compression. At least one block is read and decoded for a row."""
POSTINGS_BLOCK_BYTES: Final = 16_384
"""The block size for fresh postings. Most rows have few; smaller blocks have fewer other cells to decode."""
SET_INLINE_BYTES: Final = 32_768
"""Larger posting sets are MOB cells, which compactions do not rewrite."""
BODY_INLINE_BYTES: Final = 8_192
"""Larger bodies are MOB cells."""
SETTINGS_ROW: Final = b"settings"
PLAN_ROW: Final = b"plan"
"""Rows of ``meta``: the settings that the first consumer stored, and the capacity plan that ``store init`` stored."""
SEEN_FAMILY: Final = "t"
APPLY: Final = "dupwatch store init --apply"
"""The command that fixes all differences. With ``--print`` instead of ``--apply`` it only shows what it would do."""

_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_RESERVED: Final = "hbase"
_PREFIX_VALUES: Final = 1 << 16
_PREFIX_BYTES: Final = 2
REGION_BYTES: Final = 5_000_000_000
"""The intended size of a region: half of the size at which HBase splits one."""


@dataclass(frozen=True, slots=True)
class Family:
    """A column family and its attributes; one version of each cell is kept.

    Cells larger than ``mob_bytes`` are stored apart (MOB); if it is None, no cells are. With ``new_version_behaviour``
    a put after a delete counts even if both have the same time stamp, because a posting may be removed and added again
    within a millisecond.
    """

    name: str
    ttl_s: int = FOREVER_S
    compression: str = "SNAPPY"
    encoding: str = "FAST_DIFF"
    bloom: str = "ROW"
    block_bytes: int = BLOCK_BYTES
    new_version_behaviour: bool = False
    mob_bytes: int | None = None

    def attributes(self) -> dict[str, str]:
        """Return all attributes as text, under their names in the HBase shell."""
        mob = {} if self.mob_bytes is None else {"MOB_THRESHOLD": str(self.mob_bytes)}
        return {
            "VERSIONS": "1",
            "COMPRESSION": self.compression,
            "DATA_BLOCK_ENCODING": self.encoding,
            "BLOOMFILTER": self.bloom,
            "BLOCKSIZE": str(self.block_bytes),
            "BLOCKCACHE": "true",
            "IN_MEMORY": "false",
            "TTL": str(self.ttl_s),
            "NEW_VERSION_BEHAVIOR": str(self.new_version_behaviour).lower(),
            "IS_MOB": str(self.mob_bytes is not None).lower(),
        } | mob


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its full name, its families, and the row keys at which it is split when it is created."""

    name: str
    families: tuple[Family, ...]
    splits: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """The namespace and its tables; ``seen`` is None if texts are not remembered beyond the window."""

    namespace: str
    postings: Table
    articles: Table
    meta: Table
    seen: Table | None = None

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables."""
        tables = self.postings, self.articles, self.meta
        return tables if self.seen is None else (*tables, self.seen)


class PrefixLoad(NamedTuple):
    """The number of postings of an article under keys that begin with ``first_byte``."""

    first_byte: int
    postings: int


class DescribedFamily(NamedTuple):
    """The attributes of a family that Thrift's ``ColumnDescriptor`` shows; ``name`` may end with a colon."""

    name: str
    max_versions: int
    compression: str
    in_memory: bool
    bloom_filter: str
    block_cache: bool
    ttl_s: int


def schema_of(
    namespace: str,
    ttl_s: int,
    shares: Sequence[PrefixLoad] = (),
    regions: int = REGIONS,
    article_regions: int | None = None,
    seen_ttl_s: int = 0,
) -> Schema:
    """Return the schema of a store whose versions live for ``ttl_s`` seconds, the window plus the slack.

    ``shares`` are the loads by first byte of posting keys, in ascending order; without them the table of postings
    starts as one region, which is enough for a check. The table of articles starts with ``article_regions``, by default
    ``regions``. With ``seen_ttl_s`` texts are remembered for that many seconds, in a table with as many regions as that
    of articles.

    Raises ``ValueError`` for an invalid namespace, time to live or number of regions, and as ``posting_splits`` does.
    """
    article_regions = regions if article_regions is None else article_regions
    if not _NAMESPACE.fullmatch(namespace) or namespace == _RESERVED:
        raise ValueError(
            f"{namespace!r} is not a valid HBase namespace; use letters a to z, digits and _, but not {_RESERVED}"
        )
    for seconds in (ttl_s, seen_ttl_s or ttl_s):
        if not 0 < seconds <= FOREVER_S:
            raise ValueError(f"the time to live of HBase cells is 1 to {FOREVER_S} seconds, not {seconds}")
    for count in (regions, article_regions):
        if not 0 < count <= REGIONS_MAX:
            raise ValueError(f"a table starts with 1 to {REGIONS_MAX} regions, not {count}")
    postings = (
        Family("p", ttl_s, block_bytes=POSTINGS_BLOCK_BYTES, new_version_behaviour=True),
        Family("s", ttl_s, mob_bytes=SET_INLINE_BYTES),
    )
    articles = (
        Family("a", ttl_s, new_version_behaviour=True),
        Family("b", ttl_s, mob_bytes=BODY_INLINE_BYTES),
    )
    return Schema(
        namespace,
        Table(f"{namespace}:postings", postings, posting_splits(shares, regions)),
        Table(f"{namespace}:articles", articles, _article_splits(article_regions)),
        Table(f"{namespace}:meta", (Family("m", compression="NONE", encoding="NONE"),)),
        _seen_table(namespace, seen_ttl_s, article_regions) if seen_ttl_s else None,
    )


def posting_splits(shares: Sequence[PrefixLoad], regions: int) -> tuple[bytes, ...]:
    """Return the row keys that split postings into this many regions of practically equal load; none without shares.

    Raises ``ValueError`` unless the first bytes are distinct and in ascending order.
    """
    if [share.first_byte for share in shares] != sorted({share.first_byte for share in shares}):
        raise ValueError("the first bytes of posting keys must be in rising order")
    total = sum(share.postings for share in shares)
    cuts = [number * total * _PREFIX_VALUES // regions for number in range(1, regions)] if total else []
    splits = {_key_at(shares, cut) for cut in cuts}
    # The first region begins before every key, so a cut at the first key would leave it empty.
    return tuple(sorted(splits - {_prefix(share.first_byte, 0) for share in shares[:1]}))


def _key_at(shares: Sequence[PrefixLoad], cut: int) -> bytes:
    """Return the prefix of the key with this load before it. Each prefix value has the ``postings`` of its share."""
    for share in shares:
        width = share.postings * _PREFIX_VALUES
        if cut < width:
            return _prefix(share.first_byte, cut // share.postings)
        cut -= width
    raise AssertionError("every cut is before the end of the last share")


def _prefix(first_byte: int, value: int) -> bytes:
    return bytes([first_byte]) + value.to_bytes(_PREFIX_BYTES, "big")


def _seen_table(namespace: str, ttl_s: int, regions: int) -> Table:
    """Return the table of remembered texts. Its keys are digests, uniform like those of articles and incompressible."""
    family = Family(SEEN_FAMILY, ttl_s, encoding="NONE", block_bytes=POSTINGS_BLOCK_BYTES)
    return Table(f"{namespace}:seen", (family,), _article_splits(regions))


def _article_splits(regions: int) -> tuple[bytes, ...]:
    return tuple((number * _PREFIX_VALUES // regions).to_bytes(_PREFIX_BYTES, "big") for number in range(1, regions))


def check(
    schema: Schema,
    place: StoreAddress,
    described: Mapping[str, Iterable[DescribedFamily]],
    disabled: Iterable[str] = (),
) -> list[str]:
    """Return all differences between the schema and what Thrift shows, as sentences for a person.

    Missing tables come first, in one sentence; ``place`` is part of the command that fixes the differences.
    ``described`` has the families of each existing table, by its full name; ``disabled`` names disabled tables. A
    longer time to live is not a difference, since it only takes space. Nor is a different number of regions, which
    HBase changes as tables grow. Thrift does not show encoding, MOB and NEW_VERSION_BEHAVIOR.
    """
    missing = [table.name for table in schema.tables if table.name not in described]
    problems = [missing_tables(missing, place)] if missing else []
    disabled_names = set(disabled)
    for table in schema.tables:
        if table.name in missing:
            continue
        if table.name in disabled_names:
            problems.append(disabled_table(table.name))
        described_families = {family.name.rstrip(":"): family for family in described[table.name]}
        for family in table.families:
            if family.name in described_families:
                problems += _family_problems(place, table, family, described_families[family.name])
            else:
                problems.append(f"The table {table.name} has no family {family.name}; {_remedy(place)}.")
    return problems


def missing_tables(names: Sequence[str], place: StoreAddress) -> str:
    """Return a sentence about missing tables of the store, one or more, with the command that creates them."""
    *others, last = names
    named = f"{', '.join(others)} or {last}" if others else last
    return f"There is no table {named}; {_remedy(place)}."


def disabled_table(name: str) -> str:
    """Return a sentence about a disabled table, with the command that enables it."""
    return f"The table {name} is disabled; enable it in the HBase shell: enable '{name}'."


def _family_problems(place: StoreAddress, table: Table, family: Family, described: DescribedFamily) -> list[str]:
    required = family.attributes()
    shown = {
        "VERSIONS": str(described.max_versions),
        "COMPRESSION": described.compression.upper(),
        "BLOOMFILTER": described.bloom_filter.upper(),
        "BLOCKCACHE": str(described.block_cache).lower(),
        "IN_MEMORY": str(described.in_memory).lower(),
    }
    wrong = [(name, value, required[name]) for name, value in shown.items() if value != required[name]]
    if described.ttl_s < family.ttl_s:
        wrong.append(("TTL", _lifetime(described.ttl_s), f"at least {_lifetime(family.ttl_s)}"))
    return [
        f"The table {table.name}, family {family.name}: {name} is {value}, but must be {right}; {_remedy(place)}."
        for name, value, right in wrong
    ]


def _lifetime(ttl_s: int) -> str:
    return "FOREVER" if ttl_s == FOREVER_S else f"{ttl_s} seconds"


def _remedy(place: StoreAddress) -> str:
    return f"run: {APPLY} --store {place}"


def regions_for(size_bytes: int, servers: int = 1) -> int:
    """Return the number of regions with which a table of this size starts.

    The number is at least ``servers``, and at least ``REGIONS``, since a gateway does not report the number of servers.
    It is at most ``REGIONS_MAX``.
    """
    return min(max(REGIONS, servers, -(-size_bytes // REGION_BYTES)), REGIONS_MAX)
