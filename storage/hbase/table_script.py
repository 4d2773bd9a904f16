r"""The script for the HBase shell (``hbase shell -n``) that creates the tables of a store.

It can be repeated: existing tables are altered only where an attribute differs, and are not split again. Splits are in
the notation of HBase's ``toBytesBinary``, so HBase interprets the ``\x``.

A script with a capacity plan changes nothing if the store has another plan. Otherwise it records the plan before it
creates the other tables. No consumer starts without those, so every consumer sees the plan.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Final

from storage.hbase.schema import PLAN_ROW, SETTINGS_ROW, Schema, Table
from storage.records import CapacityPlan, encode_planned

REFUSED: Final = "refused: "
"""The beginning of the line that says why the script changed nothing."""

_HEAD: Final = """\
# The tables of dupwatch in the namespace {namespace}. Run with: hbase shell -n
# Creates what is missing and alters what differs. Running it again changes nothing.
{comments}settings = @hbase ? @hbase.configuration : Java::OrgApacheHadoopHbase::HBaseConfiguration.create
connection = Java::OrgApacheHadoopHbaseClient::ConnectionFactory.createConnection(settings)
admin = connection.getAdmin

shown = lambda do |family|
  {{
    'VERSIONS' => family.getMaxVersions.to_s,
    'COMPRESSION' => family.getCompressionType.name,
    'DATA_BLOCK_ENCODING' => family.getDataBlockEncoding.name,
    'BLOOMFILTER' => family.getBloomFilterType.name,
    'BLOCKSIZE' => family.getBlocksize.to_s,
    'BLOCKCACHE' => family.isBlockCacheEnabled.to_s,
    'IN_MEMORY' => family.isInMemory.to_s,
    'TTL' => family.getTimeToLive.to_s,
    'NEW_VERSION_BEHAVIOR' => family.isNewVersionBehavior.to_s,
    'IS_MOB' => family.isMobEnabled.to_s,
    'MOB_THRESHOLD' => family.getMobThreshold.to_s
  }}
end

fix = lambda do |table, families|
  existing = admin.getDescriptor(Java::OrgApacheHadoopHbase::TableName.valueOf(table))
  changes = families.map do |wanted|
    family = existing.getColumnFamily(wanted['NAME'].to_java_bytes)
    is = family ? shown.call(family) : {{}}
    differs = wanted.reject {{ |name, value| name == 'NAME' || is[name] == value }}
    differs.each {{ |name, value| puts "altering #{{table}}, family #{{wanted['NAME']}}: #{{name}} = #{{value}}" }}
    {{ 'NAME' => wanted['NAME'] }}.merge(differs) unless family && differs.empty?
  end.compact
  alter table, *changes unless changes.empty?
end

unless admin.listNamespaceDescriptors.any? {{ |namespace| namespace.getName == {quoted} }}
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
  fix.call(table, families)
else
  puts 'creating ' + table
  create table, *families{splits}
end
"""
_CHECK_PLAN: Final = """
plan = {plan}
plans = Java::OrgApacheHadoopHbase::TableName.valueOf({meta})
cell = ['m'.to_java_bytes, 'v'.to_java_bytes]
stored = lambda do |row|
  found = connection.getTable(plans).get(Java::OrgApacheHadoopHbaseClient::Get.new(row.to_java_bytes))
  value = found.getValue(*cell)
  value && String.from_java_bytes(value)
end
if admin.tableExists(plans)
  {{ {settings_row} => 'is bound to', {plan_row} => 'is made for' }}.each do |row, has|
    other = stored.call(row).to_s[/"plan":"([^"]*)"/, 1]
    next if other.nil? || other == plan
    puts {refused} + "the store #{{has}} the plan #{{other}}, not #{{plan}}"
    raise 'nothing was changed'
  end
end
"""
_RECORD_PLAN: Final = """
value = {value}
before = stored.call({plan_row})
unless before == value
  puts {recording}
  put = Java::OrgApacheHadoopHbaseClient::Put.new({plan_row}.to_java_bytes).addColumn(*cell, value.to_java_bytes)
  swap = connection.getTable(plans).checkAndMutate({plan_row}.to_java_bytes, cell[0]).qualifier(cell[1])
  swap = before ? swap.ifEquals(before.to_java_bytes) : swap.ifNotExists
  raise 'another plan was recorded at the same time; run this again' unless swap.thenPut(put)
end
"""
_TAIL: Final = """
connection.close
puts 'The tables are correct.'
"""


def render_script(schema: Schema, planned: CapacityPlan | None = None, comments: Sequence[str] = ()) -> str:
    """Return the script. With ``planned`` it records the capacity plan; ``comments`` are lines about the plan."""
    described = "".join(f"# {line}".rstrip() + "\n" for line in comments)
    head = _HEAD.format(namespace=schema.namespace, quoted=_ruby(schema.namespace), comments=described)
    postings, articles, meta = map(_table_script, (schema.postings, schema.articles, schema.meta))
    seen = "" if schema.seen is None else _table_script(schema.seen)
    if planned is None:
        return head + postings + articles + seen + meta + _TAIL
    values = {
        "meta": _ruby(schema.meta.name),
        "plan": _ruby(planned.plan),
        "settings_row": _ruby(SETTINGS_ROW.decode()),
        "plan_row": _ruby(PLAN_ROW.decode()),
        "value": _ruby(encode_planned(planned).decode()),
        "refused": _ruby(REFUSED),
        "recording": _ruby(f"recording the plan {planned.plan} for {planned.articles} articles in {schema.meta.name}"),
    }
    check, record = (part.format(**values) for part in (_CHECK_PLAN, _RECORD_PLAN))
    return head + check + meta + record + postings + articles + seen + _TAIL


def _table_script(table: Table) -> str:
    families = ",\n".join(f"  {_ruby_hash({'NAME': family.name} | family.attributes())}" for family in table.families)
    cuts = "".join(f",\n    {_ruby(_escaped(split))}" for split in table.splits)[1:]
    splits = f", 'SPLITS' => [{cuts}\n  ]" if cuts else ""
    return _TABLE.format(name=_ruby(table.name), families=families, splits=splits)


def _escaped(key: bytes) -> str:
    return "".join(f"\\x{byte:02X}" for byte in key)


def _ruby(text: str) -> str:
    r"""Quote for Ruby. In single quotes only ' and a \ before another \ or before the end must be escaped."""
    escaped = re.sub(r"\\(?=\\|$)|'", lambda found: "\\" + found[0], text)
    return f"'{escaped}'"


def _ruby_hash(values: Mapping[str, str]) -> str:
    return "{ " + ", ".join(starmap("{} => {}".format, ((_ruby(k), _ruby(v)) for k, v in values.items()))) + " }"
