r"""The tables, defined once: from here come the script that makes them and what a store checks when it is opened.

::

    NAMESPACE:postings   p  a cell a posting                   s  posting sets, large cells apart (MOB)
    NAMESPACE:articles   a  versions, verdicts, tombstones     b  bodies, large cells apart (MOB)
    NAMESPACE:meta       m  what the store is bound to; never expires

What lies in the cells is drawn in docs/row_keys.md. Thrift cannot make such tables: it knows neither block encoding,
nor MOB, nor splits. So they are made by a script for the HBase shell, and a store checks the part that Thrift shows.

Regions are split when a table is made, so that the first hour's writes meet all servers. Keys of postings begin with
``lane << 4 | number`` and the value, which is as good as uniform, so a region is a share of the postings that an
article has under each first byte. Nothing here does I/O.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Final, NamedTuple

from storage.hbase.options import Place

FOREVER_S: Final = 2**31 - 1
"""The time to live of cells that never expire, as HBase has it."""
REGIONS: Final = 16
"""Into how many regions postings and articles are split when nothing else is said."""
REGIONS_MAX: Final = 4096
SET_INLINE_BYTES: Final = 32_768
"""Posting sets above this are MOB cells: compactions pass them by."""
BODY_INLINE_BYTES: Final = 8_192
"""Bodies above this are MOB cells."""
APPLY: Final = "dupwatch store init --apply"
"""The command that mends every misfit; with ``--print`` instead it shows what it would do."""

_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_RESERVED: Final = "hbase"
_PREFIX_VALUES: Final = 1 << 16
_PREFIX_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Family:
    """A column family and its attributes; of every cell one version is kept.

    ``mob_bytes``: larger cells lie apart, None: none do. ``new_version_behaviour``: a put counts even where a delete
    has the same timestamp, which the put of a posting that was removed and comes again in the same millisecond needs.
    """

    name: str
    ttl_s: int = FOREVER_S
    compression: str = "SNAPPY"
    encoding: str = "FAST_DIFF"
    new_version_behaviour: bool = False
    mob_bytes: int | None = None

    def attributes(self) -> dict[str, str]:
        """Every attribute under the name that the HBase shell has for it, as text."""
        mob = {} if self.mob_bytes is None else {"MOB_THRESHOLD": str(self.mob_bytes)}
        return {
            "VERSIONS": "1",
            "COMPRESSION": self.compression,
            "DATA_BLOCK_ENCODING": self.encoding,
            "BLOOMFILTER": "ROW",
            "BLOCKCACHE": "true",
            "IN_MEMORY": "false",
            "TTL": str(self.ttl_s),
            "NEW_VERSION_BEHAVIOR": str(self.new_version_behaviour).lower(),
            "IS_MOB": str(self.mob_bytes is not None).lower(),
        } | mob


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its full name, its families, and the row keys where its regions are cut when it is made."""

    name: str
    families: tuple[Family, ...]
    splits: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """The namespace and its three tables."""

    namespace: str
    postings: Table
    articles: Table
    meta: Table

    @property
    def tables(self) -> tuple[Table, ...]:
        """All of them."""
        return self.postings, self.articles, self.meta


class Share(NamedTuple):
    """How many postings an article has under keys that begin with this byte."""

    first_byte: int
    postings: int


class DescribedFamily(NamedTuple):
    """What Thrift's ``ColumnDescriptor`` shows of a family; ``name`` with or without the colon behind it."""

    name: str
    max_versions: int
    compression: str
    in_memory: bool
    bloom_filter: str
    block_cache: bool
    ttl_s: int


def schema_of(namespace: str, ttl_s: int, shares: Sequence[Share] = (), regions: int = REGIONS) -> Schema:
    """The tables of a store whose versions live this long: the window and the slack.

    ``shares`` are the first bytes of posting keys, in rising order; without them postings begin as one region, which is
    all that a check needs to know. Raises ``ValueError`` where HBase would not take the namespace, or for numbers
    that no table can have.
    """
    if not _NAMESPACE.fullmatch(namespace) or namespace == _RESERVED:
        raise ValueError(
            f"{namespace!r} is no namespace of HBase's: one has letters a to z, digits and _, and is not {_RESERVED}"
        )
    if not 0 < ttl_s <= FOREVER_S:
        raise ValueError(f"cells of HBase live 1 to {FOREVER_S} seconds, not {ttl_s}")
    if not 0 < regions <= REGIONS_MAX:
        raise ValueError(f"a table begins with 1 to {REGIONS_MAX} regions, not {regions}")
    postings = (
        Family("p", ttl_s, new_version_behaviour=True),
        Family("s", ttl_s, mob_bytes=SET_INLINE_BYTES),
    )
    articles = (
        Family("a", ttl_s, new_version_behaviour=True),
        Family("b", ttl_s, mob_bytes=BODY_INLINE_BYTES),
    )
    return Schema(
        namespace,
        Table(f"{namespace}:postings", postings, posting_splits(shares, regions)),
        Table(f"{namespace}:articles", articles, _article_splits(regions)),
        Table(f"{namespace}:meta", (Family("m", compression="NONE", encoding="NONE"),)),
    )


def posting_splits(shares: Sequence[Share], regions: int) -> tuple[bytes, ...]:
    """Row keys that cut postings into so many regions of as good as equal load."""
    if [share.first_byte for share in shares] != sorted({share.first_byte for share in shares}):
        raise ValueError("the first bytes of posting keys have to rise")
    total = sum(share.postings for share in shares)
    cuts = [number * total * _PREFIX_VALUES // regions for number in range(1, regions)] if total else []
    splits = {_key_at(shares, cut) for cut in cuts}
    # A table's first region begins before every key, so a cut at the first key would leave one empty.
    return tuple(sorted(splits - {_prefix(share.first_byte, 0) for share in shares[:1]}))


def _key_at(shares: Sequence[Share], cut: int) -> bytes:
    """The first bytes of the key that has so many of all postings before it, each counted as all prefix values."""
    for share in shares:
        width = share.postings * _PREFIX_VALUES
        if cut < width:
            return _prefix(share.first_byte, cut // share.postings)
        cut -= width
    raise AssertionError("a cut lies before the end of all shares")


def _prefix(first_byte: int, value: int) -> bytes:
    return bytes([first_byte]) + value.to_bytes(_PREFIX_BYTES, "big")


def _article_splits(regions: int) -> tuple[bytes, ...]:
    return tuple((number * _PREFIX_VALUES // regions).to_bytes(_PREFIX_BYTES, "big") for number in range(1, regions))


def check(
    schema: Schema, place: Place, described: Mapping[str, Iterable[DescribedFamily]], disabled: Iterable[str] = ()
) -> list[str]:
    """Every misfit between the schema and what Thrift shows, as sentences for a person; none where all fits.

    Tables that are not there are named first, in one sentence; ``place`` is where the store is, for what mends it.
    ``described`` has the families of each table that is there, by its full name; ``disabled`` names tables that are
    switched off. Cells that live longer than they have to only take room, so that is no misfit. How many regions there
    are is HBase's to decide once a table is there, and no misfit either. Encoding, MOB and NEW_VERSION_BEHAVIOR do
    not show in Thrift.
    """
    missing = [table.name for table in schema.tables if table.name not in described]
    misfits = [missing_tables(missing, place)] if missing else []
    off = set(disabled)
    for table in schema.tables:
        if table.name in missing:
            continue
        if table.name in off:
            misfits.append(disabled_table(table.name))
        found = {family.name.rstrip(":"): family for family in described[table.name]}
        for family in table.families:
            if family.name in found:
                misfits += _family_misfits(place, table, family, found[family.name])
            else:
                misfits.append(f"The table {table.name} has no family {family.name}; {_mend(place)}.")
    return misfits


def missing_tables(names: Sequence[str], place: Place) -> str:
    """Say that these tables of the store, one or more, are not there, and what makes them."""
    *others, last = names
    named = f"{', '.join(others)} or {last}" if others else last
    return f"There is no table {named}; {_mend(place)}."


def disabled_table(name: str) -> str:
    """Say that a table is switched off, and what switches it on."""
    return f"The table {name} is disabled; in the HBase shell: enable '{name}'."


def _family_misfits(place: Place, table: Table, family: Family, found: DescribedFamily) -> list[str]:
    wanted = family.attributes()
    shown = {
        "VERSIONS": str(found.max_versions),
        "COMPRESSION": found.compression.upper(),
        "BLOOMFILTER": found.bloom_filter.upper(),
        "BLOCKCACHE": str(found.block_cache).lower(),
        "IN_MEMORY": str(found.in_memory).lower(),
    }
    wrong = [(name, value, wanted[name]) for name, value in shown.items() if value != wanted[name]]
    if found.ttl_s < family.ttl_s:
        wrong.append(("TTL", _lifetime(found.ttl_s), f"at least {_lifetime(family.ttl_s)}"))
    return [
        f"The table {table.name} has in family {family.name} {name} = {value} where {want} is wanted; {_mend(place)}."
        for name, value, want in wrong
    ]


def _lifetime(ttl_s: int) -> str:
    return "FOREVER" if ttl_s == FOREVER_S else f"{ttl_s} seconds"


def _mend(place: Place) -> str:
    return f"mend it with: {APPLY} --store {place}"


_HEAD: Final = """\
# The tables of dupwatch in the namespace {namespace}, for: hbase shell -n
# Makes what is missing and alters what differs. Where all is as it has to be it changes nothing.
settings = @hbase ? @hbase.configuration : Java::OrgApacheHadoopHbase::HBaseConfiguration.create
connection = Java::OrgApacheHadoopHbaseClient::ConnectionFactory.createConnection(settings)
admin = connection.getAdmin

shown = lambda do |family|
  {{
    'VERSIONS' => family.getMaxVersions.to_s,
    'COMPRESSION' => family.getCompressionType.name,
    'DATA_BLOCK_ENCODING' => family.getDataBlockEncoding.name,
    'BLOOMFILTER' => family.getBloomFilterType.name,
    'BLOCKCACHE' => family.isBlockCacheEnabled.to_s,
    'IN_MEMORY' => family.isInMemory.to_s,
    'TTL' => family.getTimeToLive.to_s,
    'NEW_VERSION_BEHAVIOR' => family.isNewVersionBehavior.to_s,
    'IS_MOB' => family.isMobEnabled.to_s,
    'MOB_THRESHOLD' => family.getMobThreshold.to_s
  }}
end

mend = lambda do |table, families|
  there = admin.getDescriptor(Java::OrgApacheHadoopHbase::TableName.valueOf(table))
  changes = families.map do |wanted|
    family = there.getColumnFamily(wanted['NAME'].to_java_bytes)
    is = family ? shown.call(family) : {{}}
    differs = wanted.reject {{ |name, value| name == 'NAME' || is[name] == value }}
    differs.each {{ |name, value| puts "altering #{{table}}, family #{{wanted['NAME']}}: #{{name}} = #{{value}}" }}
    {{ 'NAME' => wanted['NAME'] }}.merge(differs) unless family && differs.empty?
  end.compact
  alter table, *changes unless changes.empty?
end

unless admin.listNamespaceDescriptors.any? {{ |one| one.getName == {quoted} }}
  puts 'creating namespace ' + {quoted}
  create_namespace {quoted}
end
"""
_TABLE: Final = """
table = {name}
families = [
{families}
]
if admin.tableExists(Java::OrgApacheHadoopHbase::TableName.valueOf(table))
  mend.call(table, families)
else
  puts 'creating ' + table
  create table, *families{splits}
end
"""
_TAIL: Final = """
connection.close
puts 'The tables are as they have to be.'
"""


def render_script(schema: Schema) -> str:
    r"""Render the Ruby script for the HBase shell (``hbase shell -n``) that makes the tables as the schema has them.

    It may be applied again and again: what is there already is only altered where an attribute differs, and is not
    split anew. Splits are in the notation of HBase's ``toBytesBinary``: it is HBase that reads the ``\x``.
    """
    quoted = _ruby(schema.namespace)
    return (
        _HEAD.format(namespace=schema.namespace, quoted=quoted)
        + "".join(_table_script(table) for table in schema.tables)
        + _TAIL
    )


def _table_script(table: Table) -> str:
    families = ",\n".join(f"  {_ruby_hash({'NAME': family.name} | family.attributes())}" for family in table.families)
    cuts = "".join(f",\n    {_ruby(_escaped(split))}" for split in table.splits)[1:]
    splits = f", 'SPLITS' => [{cuts}\n  ]" if cuts else ""
    return _TABLE.format(name=_ruby(table.name), families=families, splits=splits)


def _escaped(key: bytes) -> str:
    return "".join(f"\\x{byte:02X}" for byte in key)


def _ruby(text: str) -> str:
    r"""Quote for Ruby. Between single quotes only ' and a \ before another or before the end have to be escaped."""
    escaped = re.sub(r"\\(?=\\|$)|'", lambda found: "\\" + found[0], text)
    return f"'{escaped}'"


def _ruby_hash(values: Mapping[str, str]) -> str:
    return "{ " + ", ".join(starmap("{} => {}".format, ((_ruby(k), _ruby(v)) for k, v in values.items()))) + " }"
