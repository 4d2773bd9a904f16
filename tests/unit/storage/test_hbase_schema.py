"""The tables as they are defined: where regions are cut, what the script says, what a check finds."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.hbase.options import parse_place
from storage.hbase.schema import (
    BODY_INLINE_BYTES,
    FOREVER_S,
    SET_INLINE_BYTES,
    DescribedFamily,
    PrefixLoad,
    Schema,
    check,
    posting_splits,
    schema_of,
)
from storage.hbase.table_script import render_script

PLACE = parse_place("hbase://one,two:9091/feed")
PLAIN = [PrefixLoad(first, 1) for first in (0, 1, 2, 3, 0x10, 0x11, 0x12, 0x13)]
"""Four blocks and four bands, a posting each."""
WITH_PARTS = [PrefixLoad(first, 4) for first in range(4)] + [PrefixLoad(0x10 + band, 1) for band in range(4)]
"""Four blocks of four parts each, and four bands."""


def fitting(schema: Schema) -> dict[str, list[DescribedFamily]]:
    """What Thrift shows of tables that are as they have to be."""
    return {
        table.name: [
            DescribedFamily(f"{family.name}:", 1, family.compression, False, "ROW", True, family.ttl_s)  # noqa: FBT003  # as Thrift has them
            for family in table.families
        ]
        for table in schema.tables
    }


def changed(schema: Schema, table: str, family: str, **values: object) -> dict[str, list[DescribedFamily]]:
    """What fits, but for one family."""
    described = fitting(schema)
    name = f"{schema.namespace}:{table}"
    described[name] = [
        shown._replace(**values) if shown.name == f"{family}:" else shown  # type: ignore[arg-type]  # names are the test's
        for shown in described[name]
    ]
    return described


@pytest.fixture
def schema() -> Schema:
    """The tables of a store."""
    return schema_of("feed", 691_200, PLAIN)


def test_the_attributes_that_matter(schema: Schema) -> None:
    """Each family has the attributes that the adapter counts on."""
    p, s = schema.postings.families
    a, b = schema.articles.families
    (m,) = schema.meta.families
    for family in (p, s, a, b):
        has = family.attributes()
        assert (has["COMPRESSION"], has["DATA_BLOCK_ENCODING"], has["TTL"]) == ("SNAPPY", "FAST_DIFF", "691200")
    assert [family.attributes()["NEW_VERSION_BEHAVIOR"] for family in (p, a)] == ["true", "true"]
    assert s.attributes()["MOB_THRESHOLD"] == str(SET_INLINE_BYTES)
    assert b.attributes()["MOB_THRESHOLD"] == str(BODY_INLINE_BYTES)
    assert [family.attributes()["IS_MOB"] for family in (p, s, a, b, m)] == ["false", "true", "false", "true", "false"]
    assert m.attributes()["TTL"] == str(FOREVER_S)
    for family in (p, s, a, b, m):
        assert (family.attributes()["VERSIONS"], family.attributes()["BLOOMFILTER"]) == ("1", "ROW")


def test_regions_of_a_plain_plan() -> None:
    """Eight regions for eight first bytes are one each; sixteen cut each in the middle."""
    assert posting_splits(PLAIN, 8) == tuple(bytes([first, 0, 0]) for first in (1, 2, 3, 0x10, 0x11, 0x12, 0x13))
    assert bytes.fromhex("028000") in posting_splits(PLAIN, 16)


def test_regions_follow_the_load() -> None:
    """A block with four parts gets four times the regions of a band."""
    splits = posting_splits(WITH_PARTS, 20)
    assert len(splits) == 19
    assert sum(split[0] == 0 for split in splits) == 3
    assert sum(split[0] == 0x11 for split in splits) == 1


@given(
    shares=st.dictionaries(st.integers(0, 255), st.integers(1, 4), min_size=1, max_size=32).map(
        lambda some: [PrefixLoad(first, some[first]) for first in sorted(some)]
    ),
    regions=st.integers(1, 300),
)
def test_regions_are_even(shares: list[PrefixLoad], regions: int) -> None:
    """Whatever the first bytes, no region has more than its share of uniform postings, to within a key."""
    splits = posting_splits(shares, regions)
    assert list(splits) == sorted(set(splits))
    ends = [*splits, b"\xff" * 9]
    loads = [0.0] * len(ends)
    total = sum(share.postings for share in shares)
    begin = b""
    for number, end in enumerate(ends):
        for share in shares:
            low, high = (place(key, share.first_byte) for key in (begin, end))
            loads[number] += (high - low) * share.postings / total
        begin = end
    assert max(loads) <= 1 / regions + 2**-14
    assert sum(loads) == pytest.approx(1)


def place(key: bytes, first_byte: int) -> float:
    """What share of the keys that begin with this byte lies before this key."""
    if not key or key[0] < first_byte:
        return 0.0
    if len(key) > 3:
        return 1.0
    return int.from_bytes(key[1:3], "big") / 2**16 if key[0] == first_byte else 1.0


def test_regions_of_articles_are_even() -> None:
    """Hashes of ids fall evenly into the regions of articles."""
    splits = schema_of("feed", 1, regions=10).articles.splits
    ids = [random.Random(number).randbytes(16) for number in range(5000)]
    counts = [
        sum(low <= id_hash < high for id_hash in ids)
        for low, high in zip((b"", *splits), (*splits, b"\xff" * 17), strict=True)
    ]
    assert len(counts) == 10
    assert min(counts) > 350


@pytest.mark.parametrize(
    "namespace", ["", "two words", "a'b", 'a"b', "a#{b}", "a:b", "a-b", "a\n", "hbase", "ü", "a\\"]
)
def test_namespaces_that_hbase_would_not_take(namespace: str) -> None:
    """A name that HBase would not take, or that could end a quotation, makes no schema."""
    with pytest.raises(ValueError, match="not a valid HBase namespace"):
        schema_of(namespace, 1)


@pytest.mark.parametrize(("ttl_s", "regions"), [(0, 1), (2**31, 1), (1, 0), (1, 5000)])
def test_numbers_that_no_table_has(ttl_s: int, regions: int) -> None:
    """Times and counts that HBase cannot have are refused."""
    with pytest.raises(ValueError, match="not"):
        schema_of("feed", ttl_s, PLAIN, regions)


def test_first_bytes_have_to_rise() -> None:
    """Shares in another order would give splits that are not regions."""
    with pytest.raises(ValueError, match="rising order"):
        posting_splits([PrefixLoad(1, 1), PrefixLoad(0, 1)], 4)


def test_the_script_has_every_attribute_and_split(schema: Schema) -> None:
    """Every table, family, attribute and cut of the schema stands in the script, quoted."""
    script = render_script(schema)
    for table in schema.tables:
        assert f"table = '{table.name}'\n" in script
        for family in table.families:
            for name, value in family.attributes().items():
                assert f"'{name}' => '{value}'" in script
        for split in table.splits:
            escaped = "".join(f"\\x{byte:02X}" for byte in split)
            assert f"'{escaped}'" in script
    assert script.isascii()


def test_strings_of_ruby_end_where_they_should(schema: Schema) -> None:
    """A name with quotes and backslashes stays one string of Ruby's."""
    hostile = replace(schema, meta=replace(schema.meta, name="a'; exit #{1} \\\\ \\"))
    assert "table = 'a\\'; exit #{1} \\\\\\ \\\\'\n" in render_script(hostile)


def test_tables_that_fit(schema: Schema) -> None:
    """What is as it has to be has no problem, with the colon that Thrift puts behind families or without."""
    described = fitting(schema)
    assert check(schema, PLACE, described) == []
    bare = {name: [shown._replace(name=shown.name.rstrip(":")) for shown in some] for name, some in described.items()}
    assert check(schema, PLACE, bare) == []


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"max_versions": 3}, "VERSIONS is 3, but must be 1"),
        ({"compression": "NONE"}, "COMPRESSION is NONE, but must be SNAPPY"),
        ({"bloom_filter": "NONE"}, "BLOOMFILTER is NONE, but must be ROW"),
        ({"block_cache": False}, "BLOCKCACHE is false, but must be true"),
        ({"in_memory": True}, "IN_MEMORY is true, but must be false"),
        ({"ttl_s": 691_199}, "TTL is 691199 seconds, but must be at least 691200 seconds"),
    ],
)
def test_a_misfit_is_named(schema: Schema, values: dict[str, object], says: str) -> None:
    """A problem is one sentence with table, family, attribute, what is there, what is wanted, and what mends it."""
    (problem,) = check(schema, PLACE, changed(schema, "articles", "b", **values))
    mended = "run: dupwatch store init --apply --store hbase://one:9090,two:9091/feed."
    assert problem == f"The table feed:articles, family b: {says}; {mended}"


def test_cells_may_live_longer(schema: Schema) -> None:
    """A longer life is not a problem, and meta never expires."""
    assert check(schema, PLACE, changed(schema, "postings", "p", ttl_s=FOREVER_S)) == []
    (problem,) = check(schema, PLACE, changed(schema, "meta", "m", ttl_s=691_200))
    assert "at least FOREVER" in problem


def test_what_is_missing_is_named(schema: Schema) -> None:
    """A table or family that is not there and a table that is switched off are named."""
    described = fitting(schema)
    del described["feed:meta"]
    described["feed:postings"] = described["feed:postings"][:1]
    problems = check(schema, PLACE, described, ["feed:articles"])
    assert [sentence.partition(";")[0] for sentence in problems] == [
        "There is no table feed:meta",
        "The table feed:postings has no family s",
        "The table feed:articles is disabled",
    ]


def test_all_that_is_missing_is_one_sentence(schema: Schema) -> None:
    """With all tables, and a command that can be given as it stands."""
    (problem,) = check(schema, PLACE, {})
    missing, _, remedy = problem.partition("; ")
    assert missing == "There is no table feed:postings, feed:articles or feed:meta"
    assert remedy == "run: dupwatch store init --apply --store hbase://one:9090,two:9091/feed."
