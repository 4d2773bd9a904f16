"""The report of ``dupwatch size``: a line for each figure, with its source. Pure functions."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from consumer.store_tools import sizing
from consumer.store_tools.sizing import GB, Sizing, TopicSize
from consumer.store_tools.speeds import MEASURED_ON
from consumer.text.counts import counted

GIVEN: Final = "given"
ASSUMED: Final = "assumed"
COMPUTED: Final = "computed"
DOCUMENTED: Final = "measured for the docs"
SAMPLED: Final = "measured: sample"
HERE: Final = "measured here"
_DAY_S: Final = sizing.DAY_S
_HOUR_S: Final = 3_600
_GB_SHOWN_FROM: Final = 100


class SizingFigure(NamedTuple):
    """A figure: a key and a value for programs, a name and a text for people, and its source."""

    key: str
    value: float | str
    name: str
    shown: str
    source: str


class FigureGroup(NamedTuple):
    """Figures under a heading."""

    title: str
    figures: tuple[SizingFigure, ...]


class Sources(NamedTuple):
    """The sources of a sizing's figures. ``notes`` says what was measured, and when."""

    window: str
    copies: str
    chars: str
    texts: str
    speed: str
    peak: str
    notes: tuple[str, ...] = ()


def groups(found: Sizing, sources: Sources, topics: tuple[TopicSize, ...]) -> Iterator[FigureGroup]:
    """Yield all figures, by group."""
    yield FigureGroup("Feed", tuple(_feed(found, sources)))
    yield FigureGroup("Articles", tuple(_articles(found, sources)))
    yield FigureGroup("Plan", tuple(_plan(found)))
    yield FigureGroup("Machines", tuple(_machines(found, sources)))
    yield FigureGroup("Memory", tuple(_memory(found)))
    yield FigureGroup("Disks", tuple(_disks(found)))
    yield FigureGroup("Topics on the brokers' disks", tuple(_topics(found, topics)))


def _feed(found: Sizing, sources: Sources) -> Iterator[SizingFigure]:
    feed = found.feed
    slack_s = feed.lifetime_s - feed.window_s
    yield SizingFigure("articles_a_day", feed.articles_a_day, "articles a day", f"{feed.articles_a_day:,}", GIVEN)
    yield SizingFigure("copies", feed.copies, "copies among them", f"{100 * feed.copies:g} %", sources.copies)
    yield SizingFigure("window_s", feed.window_s, "window", span(feed.window_s), sources.window)
    yield SizingFigure("slack_s", slack_s, "slack", span(slack_s), "store.slack_s")
    yield SizingFigure("peak", feed.peak, "peak", f"{feed.peak:g} times the average", sources.peak)
    yield SizingFigure("peak_a_s", feed.peak_a_s, "articles a second at peak", f"{feed.peak_a_s:,.0f}", COMPUTED)
    yield SizingFigure("in_window", feed.in_window, "kept in the window", f"{feed.in_window:,}", COMPUTED)
    yield SizingFigure(
        "stored", found.stored_versions, "articles in the store", f"{found.stored_versions:,.0f}", COMPUTED
    )


def _articles(found: Sizing, sources: Sources) -> Iterator[SizingFigure]:
    texts, source = found.texts, sources.texts
    yield SizingFigure("language", texts.language, "language", texts.language, source)
    yield SizingFigure(
        "chars", texts.chars, "characters", f"{texts.chars:,.0f}", source if texts.sample else sources.chars
    )
    text = f"{texts.text_bytes:,.0f} bytes ({texts.char_bytes:.2f} a character)"
    yield SizingFigure("text_bytes", texts.text_bytes, "text in UTF-8", text, source)
    packed = f"{texts.packed_bytes:,.0f} bytes" if found.keep_bodies else "not kept (store.keep_bodies)"
    yield SizingFigure("packed_bytes", texts.packed_bytes, "text in the store", packed, source)
    yield SizingFigure("keywords", texts.keywords, "keywords in its record", f"{texts.keywords:.0f}", source)
    yield SizingFigure("record_bytes", found.record_bytes, "record", f"{found.record_bytes:,.0f} bytes", source)
    yield SizingFigure("verdict_bytes", found.verdict_bytes, "verdict", f"{found.verdict_bytes:,.0f} bytes", source)
    yield SizingFigure("message_bytes", texts.message_bytes, "message", f"{texts.message_bytes:,.0f} bytes", source)


def _plan(found: Sizing) -> Iterator[SizingFigure]:
    plan = found.plan
    yield SizingFigure("plan", plan.plan.name, "plan", f"{plan.plan.name}: {plan.reason}", DOCUMENTED)
    yield SizingFigure("rows_read", plan.rows, "a look-up reads", counted(plan.rows, "row"), COMPUTED)
    postings = counted(plan.postings, "posting")
    yield SizingFigure("postings_written", plan.postings, "and writes, if it is kept", postings, COMPUTED)
    if found.remote:
        pack = "daily" if found.pays_to_pack else "never"
        yield SizingFigure("store_pack", pack, "dupwatch store pack", pack, COMPUTED)


def _machines(found: Sizing, sources: Sources) -> Iterator[SizingFigure]:
    speed = found.speed
    rate = speed.consumer_a_s
    yield SizingFigure("consumer_a_s", rate, "one consumer judges", f"{rate:,.0f} articles a second", sources.speed)
    yield SizingFigure(
        "fingerprint_us", speed.fingerprint_us, "  fingerprint", f"{speed.fingerprint_us:,.0f} µs", sources.speed
    )
    judge_source = DOCUMENTED if found.remote else sources.speed
    yield SizingFigure("judge_us", speed.judge_us, "  judging", f"{speed.judge_us:,.0f} µs", judge_source)
    spare = f"{found.consumers}, including one spare"
    yield SizingFigure("consumers", found.consumers, "consumers", spare, COMPUTED)
    cores = f"{found.cores_at_peak:,.1f}"
    yield SizingFigure("cores_at_peak", found.cores_at_peak, "cores busy at the peak", cores, COMPUTED)
    if found.remote:
        yield SizingFigure("gateways", found.gateways, "Thrift gateways", f"{found.gateways}, of one core", COMPUTED)
        size = f"{found.region_servers}, of {sizing.SERVER_CORES} cores"
        yield SizingFigure("region_servers", found.region_servers, "region servers", size, COMPUTED)
    else:
        room = f"up to {found.store_a_s:,.0f} articles a second"
        yield SizingFigure("store_a_s", found.store_a_s, "one LMDB store", room, sources.speed)
    yield SizingFigure("brokers", found.brokers, "Kafka brokers", f"{found.brokers}", COMPUTED)


def _memory(found: Sizing) -> Iterator[SizingFigure]:
    yield SizingFigure("consumer_mb", sizing.CONSUMER_MB, "each consumer", f"{sizing.CONSUMER_MB} MB", ASSUMED)
    if found.remote:
        yield SizingFigure("gateway_mb", sizing.GATEWAY_MB, "each gateway", f"{sizing.GATEWAY_MB:,} MB", ASSUMED)
        yield SizingFigure("server_gb", sizing.SERVER_GB, "each region server", f"{sizing.SERVER_GB} GB", ASSUMED)
    else:
        memory = gigabytes(found.memory_mb * 1e6)
        yield SizingFigure("memory_bytes", found.memory_mb * 1e6, "machine of the store", memory, COMPUTED)
    yield SizingFigure("broker_gb", sizing.BROKER_GB, "each broker", f"{sizing.BROKER_GB} GB", ASSUMED)


def _disks(found: Sizing) -> Iterator[SizingFigure]:
    yield SizingFigure("store_bytes", found.store_bytes, "store", gigabytes(found.store_bytes), COMPUTED)
    postings = gigabytes(found.postings_bytes)
    yield SizingFigure("postings_bytes", found.postings_bytes, "  its postings", postings, COMPUTED)
    if found.remote:
        factor = f"{sizing.REPLICAS} replicas, {sizing.HEADROOM:g} for compactions"
        yield SizingFigure("regions", found.regions, "regions of each table", f"{found.regions}", COMPUTED)
    else:
        factor = f"filled up to {100 * sizing.DISK_MAX:.0f} %"
    yield SizingFigure("disk_bytes", found.disk_bytes, "disks", f"{gigabytes(found.disk_bytes)} ({factor})", COMPUTED)


def _topics(found: Sizing, topics: tuple[TopicSize, ...]) -> Iterator[SizingFigure]:
    yield SizingFigure("partitions", found.partitions, "partitions of each", f"{found.partitions}", COMPUTED)
    for topic in topics:
        size_bytes = topic.size_bytes * sizing.REPLICAS
        kept = f"{gigabytes(size_bytes)} in {topic.days:g} days"
        only = "" if topic.is_on else f", only with {topic.setting}"
        yield SizingFigure(f"{topic.name}_topic_bytes", size_bytes, topic.name, f"{kept}{only}", COMPUTED)


def assumptions(found: Sizing, sources: Sources) -> Iterator[str]:
    """Yield the assumptions behind the figures, one sentence each."""
    yield from sources.notes
    yield "Messages are uncompressed JSON; topics have 3 replicas. Dead letters add up to 1 GiB per partition."
    yield f"Measured for the docs: {MEASURED_ON} (docs/operate/sizing.md)."
    yield f"Consumers run at half their throughput, and servers are up to {100 * sizing.BUSY_MAX:.0f} % busy."
    if found.remote:
        yield (
            f"A region server has {sizing.SERVER_CORES} cores, {sizing.SERVER_GB} GB and"
            f" {sizing.SERVER_DISK_GB // 1_000} TB of disk, filled up to {100 * sizing.DISK_MAX:.0f} %."
        )
    else:
        yield "The page cache holds all postings, so look-ups never wait for a disk."


def span(seconds: int) -> str:
    """Return a period in days, or in hours if it is not a whole number of days."""
    if seconds % _DAY_S == 0:
        return counted(seconds // _DAY_S, "day")
    return f"{seconds / _HOUR_S:,.1f} hours"


def gigabytes(size_bytes: float) -> str:
    """Return a size in GB, or in MB if it is small."""
    if size_bytes < GB:
        return f"{size_bytes / 1e6:,.0f} MB"
    return f"{size_bytes / GB:,.{0 if size_bytes >= _GB_SHOWN_FROM * GB else 1}f} GB"
