"""Rates, means and quantiles between two scrapes."""

import math

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from consumer.doctor.scrapes import Interval, Scrape, mean, parse_scrape, quantile, rate

BOUNDS = (0.1, 1.0, 10.0)


class Consumer:
    """Some metrics of a consumer with a start time."""

    def __init__(self, began_s: float = 1000.0) -> None:
        self.registry = CollectorRegistry()
        self.articles = Counter("articles", "Articles.", ["outcome"], registry=self.registry)
        self.seconds = Histogram("seconds", "Seconds.", buckets=BOUNDS, registry=self.registry)
        Gauge("process_start_time_seconds", "Begin.", registry=self.registry).set(began_s)

    def scrape(self, at_s: float) -> Scrape:
        """What it says at a time."""
        return parse_scrape(generate_latest(self.registry).decode(), at_s)


def test_rates_are_of_the_time_between() -> None:
    """By label or in total, of one consumer or of several with different intervals."""
    consumer = Consumer()
    consumer.articles.labels("unique").inc(100)
    before = consumer.scrape(1010)
    consumer.articles.labels("unique").inc(6)
    consumer.articles.labels("duplicate").inc(2)
    interval = Interval(before, consumer.scrape(1014))
    assert rate([interval], "articles_total") == 2
    assert rate([interval], "articles_total", outcome="duplicate") == 0.5
    assert rate([interval], "nothing_total") == 0
    assert rate([interval, Interval(before, consumer.scrape(1012))], "articles_total") == 2 + 4


def test_the_first_look_is_since_the_consumer_began() -> None:
    """Without an earlier scrape, the interval begins when the process started."""
    consumer = Consumer(began_s=1000)
    consumer.articles.labels("unique").inc(100)
    assert rate([Interval(None, consumer.scrape(1050))], "articles_total") == 2


@pytest.mark.parametrize("count", [3, 300])
def test_a_consumer_that_was_started_again_begins_at_0(count: int) -> None:
    """Whether it has counted more or less than before the restart, the rate is right."""
    old, new = Consumer(began_s=1000), Consumer(began_s=1015)
    old.articles.labels("unique").inc(100)
    new.articles.labels("unique").inc(count)
    assert rate([Interval(old.scrape(1010), new.scrape(1020))], "articles_total") == count / 10


def test_a_counter_that_went_back_begins_at_0() -> None:
    """For example when two consumers answer under one address in turn."""
    before, after = parse_scrape("articles_total 100\n", 10), parse_scrape("articles_total 30\n", 20)
    assert rate([Interval(before, after)], "articles_total") == 3


def test_quantiles_lie_within_their_buckets() -> None:
    """As in Prometheus: evenly distributed within a bucket, over all consumers."""
    consumer, other = Consumer(), Consumer()
    for _ in range(10):
        consumer.seconds.observe(0.05)
    before = consumer.scrape(1001), other.scrape(1001)
    for value in (0.5, 0.6, 0.7, 0.8):
        consumer.seconds.observe(value)
    intervals = [Interval(before[0], consumer.scrape(1002)), Interval(before[1], other.scrape(1002))]
    assert quantile(intervals, 0.5, "seconds") == pytest.approx(0.1 + 0.9 * 0.5)
    assert quantile(intervals, 1.0, "seconds") == 1.0
    assert mean(intervals, "seconds") == pytest.approx(0.65)
    for _ in range(4):
        other.seconds.observe(5)
    intervals = [intervals[0], Interval(before[1], other.scrape(1002))]
    assert quantile(intervals, 0.5, "seconds") == 1.0
    assert quantile(intervals, 0.75, "seconds") == pytest.approx(1 + 9 * 0.5)


def test_what_lies_beyond_the_last_bound_is_said_to() -> None:
    """Beyond the last bound it is infinity; without observations there is neither quantile nor mean."""
    consumer = Consumer()
    before = consumer.scrape(1001)
    nothing = [Interval(before, consumer.scrape(1002))]
    assert quantile(nothing, 0.5, "seconds") is None
    assert mean(nothing, "seconds") is None
    assert quantile(nothing, 0.5, "other") is None
    consumer.seconds.observe(100)
    assert quantile([Interval(before, consumer.scrape(1002))], 0.5, "seconds") == math.inf


@pytest.mark.parametrize("text", ["<html>no</html>", 'a{b="c} 1', 'a{b="c"} x', "{"])
def test_text_that_is_no_metrics_is_refused(text: str) -> None:
    """It always raises ValueError, whatever the parser does."""
    with pytest.raises(ValueError, match="Prometheus"):
        parse_scrape(text, 0)


def test_samples_are_found_by_name_and_labels() -> None:
    """Samples match if they have these labels, possibly among others."""
    scrape = parse_scrape('lag{topic="a",partition="0"} 3\nlag{topic="a",partition="1"} 4\nlag{topic="b"} 5\n', 0)
    assert scrape.total("lag") == 12
    assert scrape.total("lag", topic="a") == 7
    assert scrape.values_of("lag", "partition") == ["0", "1"]
    assert scrape.values("none") == []
