"""What a feed needs, computed by hand, and what follows from languages, lengths and limits."""

from dataclasses import replace
from itertools import pairwise

import pytest

from consumer.config.loading import load_config
from consumer.fingerprint import Scheme
from consumer.store_tools.sizing import DAY_S, Feed, Sizing, table_bytes
from consumer.store_tools.speeds import Speed, documented_speed
from consumer.store_tools.store_plan import store_plan
from consumer.store_tools.text_sizes import TextSizes, assumed_sizes, entry_page_bytes
from storage.hbase.schema import regions_for

WEEK_S = 7 * DAY_S
TEXTS = TextSizes(
    chars=1_000,
    text_bytes=2_900,
    packed_bytes=1_800,
    page_bytes=2_700,
    record_bytes=1_100,
    verdict_bytes=400,
    flag_bytes=900,
    message_bytes=3_100,
    keywords=32,
)
SPEED = Speed(fingerprint_us=100, judge_us=900, gateway_us=300, server_us=1_000, waiting_us=500)


def sizing(articles_a_day: int = 5_000_000, *, remote: bool = True, copies: float = 0.2, **settings: object) -> Sizing:
    """Return what a feed with these texts and this speed needs."""
    config = load_config(None, {"judge": settings})
    feed = Feed(articles_a_day, copies, WEEK_S, WEEK_S + DAY_S)
    plan = store_plan(config, Scheme(), feed.in_window, remote=remote)
    return Sizing(feed, TEXTS, plan, SPEED, remote, parts=config.judge.parts)


def test_a_feed_on_hbase_computed_by_hand() -> None:
    """Every figure from the formulas."""
    found = sizing()
    assert found.feed.in_window == 28_000_000
    assert (found.stored_versions, found.kept_versions) == (40_000_000, 32_000_000)
    assert found.feed.peak_a_s == pytest.approx(289.35, abs=0.01)
    # 16 keys of blocks and 4 of bands, with five bytes each and two before them.
    assert found.record_bytes == 1_100 + 20 * 7
    assert found.verdict_bytes == 0.8 * 400 + 0.2 * 900
    assert found.tables.postings == 32_000_000 * 20 * 55
    assert found.tables.articles == pytest.approx(40_000_000 * (1_740 * 0.67 + 20 + 1_800 + 20))
    assert found.disk_bytes == pytest.approx(sum(found.tables) * 3.9)
    assert found.regions == regions_for(found.tables.articles) == 25
    assert found.consumers == 2
    assert found.partitions == 6
    assert found.cores_at_peak == pytest.approx(289.35 * 0.0018, rel=1e-4)
    articles, duplicates, verdicts, unique = (topic.size_bytes for topic in found.topics())
    assert articles == 40_000_000 * 3_100
    assert duplicates == pytest.approx(30_000_000 * 900)
    assert verdicts == pytest.approx(30_000_000 * 900 + 120_000_000 * 400)
    assert unique == pytest.approx(120_000_000 * 3_100)
    assert found.topic_disk_bytes == pytest.approx(3 * (articles + duplicates))


def test_an_lmdb_store_takes_pages() -> None:
    """Two thirds of the entries that fit are in a page; larger ones have pages of their own."""
    page = 4_096 * 1.015 / 0.66
    assert entry_page_bytes(100) == pytest.approx(page / 28)
    assert entry_page_bytes(1_250) == pytest.approx(page / 3)
    assert entry_page_bytes(4_000) == pytest.approx(4_096 + page / 81)
    assert entry_page_bytes(4_081) == pytest.approx(8_192 + page / 81)
    small, large = sizing(1_000, remote=False), sizing(1_000_000, remote=False)
    assert large.store_bytes / large.stored_versions < small.store_bytes / small.stored_versions
    without = replace(large, keep_bodies=False)
    assert large.store_bytes - without.store_bytes == pytest.approx(large.stored_versions * TEXTS.page_bytes, rel=0.001)
    assert large.memory_mb > large.postings_bytes / 1e6


def test_more_of_everything_needs_more() -> None:
    """Machines follow from processors, disks and regions, whichever needs most."""
    small, large = sizing(10_000), sizing(500_000_000)
    assert (small.consumers, small.gateways, small.region_servers, small.brokers) == (2, 2, 3, 3)
    assert large.consumers == 59
    assert large.partitions == 118
    assert large.gateways == 15
    assert large.region_servers == 25
    assert large.brokers > 10
    slow = replace(large, speed=SPEED._replace(server_us=1e6))
    assert slow.region_servers > large.region_servers
    assert replace(large, speed=SPEED._replace(articles_a_s=100_000)).consumers == 2


def test_copies_have_no_postings_and_longer_verdicts() -> None:
    """Nor do they count in the window."""
    none, half = sizing(copies=0), sizing(copies=0.5)
    assert half.feed.in_window * 2 == none.feed.in_window
    assert half.tables.postings * 2 == none.tables.postings
    assert half.tables.articles > none.tables.articles


def test_parts_are_in_records_and_postings() -> None:
    """Sixteen postings more, and larger records, unless a sample has them already."""
    plain, parts = sizing(), sizing(parts=True)
    assert parts.plan.postings == plain.plan.postings + 16
    assert parts.record_bytes == plain.record_bytes + 800
    assert replace(parts, texts=replace(TEXTS, sample=5)).record_bytes == plain.record_bytes


@pytest.mark.parametrize(("a_day", "pays"), [(400_000, False), (700_000, True)])
def test_packing_pays_with_eight_postings_a_row_and_day(a_day: int, *, pays: bool) -> None:
    """Only short keys have such rows, and only HBase has sets."""
    assert sizing(a_day, plan="4x16").pays_to_pack is pays
    assert not sizing(a_day, plan="4x16", remote=False).pays_to_pack
    assert not sizing(100_000_000).pays_to_pack


def test_languages_differ_in_bytes_and_keywords() -> None:
    """A Chinese text has three times the bytes of an English one, and reaches all its keywords sooner."""
    chinese, english, mixed = (assumed_sizes(1_000, language) for language in ("zh", "en", "mixed"))
    assert chinese.char_bytes == pytest.approx(2.9)
    assert english.char_bytes == pytest.approx(1.01)
    assert mixed.text_bytes == pytest.approx((chinese.text_bytes + english.text_bytes) / 2)
    assert chinese.packed_bytes > 2 * english.packed_bytes
    assert [size.language for size in (chinese, english, mixed)] == ["zh", "en", "mixed"]
    post, message = assumed_sizes(80, "zh"), assumed_sizes(80, "en")
    assert 32 > post.keywords > message.keywords
    assert post.record_bytes > message.record_bytes
    assert assumed_sizes(100_000, "zh").keywords == 32


@pytest.mark.parametrize("language", ["zh", "en"])
def test_longer_texts_take_more_and_compress_better(language: str) -> None:
    """At no length does the computed share of Snappy jump."""
    sizes = [assumed_sizes(chars, language) for chars in range(10, 12_000, 90)]  # type: ignore[arg-type]
    packed = [size.packed_bytes for size in sizes]
    assert packed == sorted(packed)
    shares = [round(size.packed_bytes / size.text_bytes, 6) for size in sizes]
    assert shares == sorted(shares, reverse=True)
    assert max(high - low for high, low in pairwise(shares)) < 0.1


def test_the_documented_speed_follows_from_length_and_language() -> None:
    """Judging does not depend on the length; an unknown plan of HBase counts as the large one."""
    short, long = (documented_speed(chars, "zh", "16x28", remote=True) for chars in (100, 5_000))
    assert short.judge_us == long.judge_us
    assert short.fingerprint_us < long.fingerprint_us
    assert documented_speed(5_000, "en", "16x28", remote=True).fingerprint_us < long.fingerprint_us
    assert documented_speed(5_000, "zh", "4x32", remote=True) == long
    assert documented_speed(5_000, "zh", "16x28", remote=False).gateway_us == 0
    assert long.consumer_a_s == pytest.approx(1e6 / (long.fingerprint_us + long.judge_us))
    assert long._replace(articles_a_s=7.0).consumer_a_s == 7


def test_english_records_compress_better_on_hbase() -> None:
    """The same bytes in English take less."""
    found = sizing()
    english = replace(found, texts=replace(TEXTS, text_bytes=1_000))
    assert found.tables.articles - english.tables.articles == pytest.approx(40_000_000 * 1_740 * 0.13)


def test_tables_without_texts() -> None:
    """Without bodies an article has a version only."""
    plan = sizing().plan
    whole, versions = (table_bytes(10, TEXTS, plan, keep_bodies=keep, parts=False) for keep in (True, False))
    assert whole.articles - versions.articles == 10 * 1_820
    # With few articles the postings of a block of an article are near each other, and are compressed together.
    assert whole.postings == versions.postings == 10 * 20 * 29
