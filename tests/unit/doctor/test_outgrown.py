"""Which plans have been outgrown, by the metrics of consumers."""

import pytest

from consumer.doctor import scrapes
from consumer.doctor.scrapes import Interval, OutgrownPlan, outgrown_plans, parse_scrape
from consumer.telemetry.metrics import GROUPS

LARGER = {"4x16": "16x28", "16x28": ""}


def scrape(articles: int, postings: int, plan: str = "4x16", *, remote: bool = True, began: int = 1) -> str:
    """The metrics of a consumer."""
    opened = 'dupwatch_store_connections_total{what="opened"} 4\n' if remote else ""
    return (
        f"process_start_time_seconds {began}\n"
        f'dupwatch_build_info{{larger_plan="{LARGER[plan]}",plan="{plan}",scheme="jieba-tfidf/1"}} 1\n'
        f'dupwatch_articles_total{{outcome="unique"}} {articles}\ndupwatch_postings_read_total {postings}\n{opened}'
    )


def interval(before: str | None, after: str) -> Interval:
    """What happened between two scrapes."""
    return Interval(None if before is None else parse_scrape(before, 10), parse_scrape(after, 12))


def test_a_plan_is_outgrown_by_the_mean_over_all_its_consumers() -> None:
    """Consumers with one plan share a window; another plan is judged by itself."""
    short = [interval(scrape(0, 0), scrape(100, 90_000)), interval(scrape(0, 0), scrape(300, 170_000))]
    long = [interval(scrape(0, 0, "16x28"), scrape(100, 10**9, "16x28"))]
    assert list(outgrown_plans(short + long)) == [OutgrownPlan("4x16", 650.0, 500, "16x28")]
    assert list(outgrown_plans(long)) == []
    assert list(outgrown_plans([])) == []


@pytest.mark.parametrize(
    ("postings", "remote", "count"), [(50_000, True, 0), (50_100, True, 1), (400_000, False, 0), (400_100, False, 1)]
)
def test_the_limit_is_that_of_the_kind_of_store(postings: int, remote: bool, count: int) -> None:  # noqa: FBT001  # a parameter
    """Only consumers of a remote store open connections."""
    found = interval(scrape(0, 0, remote=remote), scrape(100, postings, remote=remote))
    assert len(list(outgrown_plans([found]))) == count


def test_a_plan_without_a_larger_one_is_never_outgrown() -> None:
    """Also 4x16, where no larger plan finds pairs as far apart as is configured."""
    far = scrape(100, 10**9).replace('larger_plan="16x28"', 'larger_plan=""')
    assert list(outgrown_plans([interval(scrape(0, 0), far)])) == []


def test_few_articles_say_little() -> None:
    """Then the mean since the start of the consumer counts."""
    slow = interval(scrape(10_000, 1_000_000), scrape(10_049, 1_900_000))
    assert list(outgrown_plans([slow])) == []
    assert [found.read for found in outgrown_plans([interval(scrape(0, 0), scrape(49, 49_000))])] == [1_000]
    assert list(outgrown_plans([interval(scrape(9_000, 10**8), scrape(9_050, 10**8))])) == []


def test_consumers_without_articles_or_plan_are_passed_over() -> None:
    """As at the start, or of an older version."""
    assert list(outgrown_plans([interval(None, scrape(0, 0))])) == []
    bare = interval(None, "process_start_time_seconds 1\ndupwatch_articles_total 5\n")
    assert list(outgrown_plans([bare])) == []


def test_the_metrics_exist() -> None:
    """Under the names that are looked for, with the label."""
    measures = {
        measure.name: [label.name for label in measure.labels] for group in GROUPS for measure in group.measures
    }
    assert {scrapes._POSTINGS, scrapes._ARTICLES, scrapes._CONNECTIONS} <= measures.keys()
    assert {"plan", "larger_plan"} <= set(measures[scrapes._BUILD])
