"""What the doctor says of the size of a window: whether it fits its plan, and the commands that move it."""

import pytest

from consumer.config.loading import load_config
from consumer.config.profiles import settings_by_profile
from consumer.doctor.finding import Finding
from consumer.doctor.stores import StoreWindow, size_finding
from consumer.fingerprint import BlockPlan
from consumer.judge.settings import JudgeSettings
from consumer.store_tools.store_plan import WindowSize
from storage.records import CapacityPlan

TOPICS = "kafka://broker:9092/articles"
STORE = "hbase://gateway:9090/feed"


def finding(
    size: WindowSize,
    planned: CapacityPlan | None = None,
    *,
    plan: str = "4x16",
    profile: str = "news",
    remote: bool = True,
    source: str = TOPICS,
) -> Finding:
    """What is said of a window of this size in a store of a profile."""
    config = load_config(None, {"source": {"url": source}, "store": {"url": STORE}, "kafka": {"group": "news"}})
    settings = settings_by_profile(JudgeSettings(BlockPlan.named(plan), ""))[profile]
    return size_finding(StoreWindow(size, planned, settings, remote), config)


def test_a_window_that_fits() -> None:
    """With its size, and with what was expected if that is known."""
    assert finding(WindowSize(800_000, 0.1)) == Finding(
        "ok", "The window has about 800,000 kept articles (± 10%); the plan 4x16 fits."
    )
    assert finding(WindowSize(800_000, 0.1), CapacityPlan(900_000, "4x16")).found == (
        "The window has about 800,000 kept articles (± 10%), of 900,000 expected; the plan 4x16 fits."
    )


def test_a_window_that_has_outgrown_its_plan() -> None:
    """A warning with the postings that are read, the limit, and the two commands that move the group."""
    found = finding(WindowSize(5_000_000, 0.1))
    assert found.status == "warning"
    assert found.found == (
        "The window has about 5,000,000 kept articles (± 10%), and has outgrown the plan 4x16: a look-up reads about "
        "1,068 postings, and from 2,340,000 articles on, judging takes twice as long as with 16x28."
    )
    assert found.remedy == (
        "Run dupwatch store init --config NEW --articles 5000000 --apply, then dupwatch migrate --config NEW "
        f"--from-group news --from-store {STORE}, where NEW is a copy of the configuration with "
        'judge.plan = "16x28" and a store.url of its own, and a kafka.group of its own (docs/operate/migration.md).'
    )


def test_posts_outgrow_their_plan_earlier() -> None:
    """The finding names the candidates that chance brings, and the limit that counts them."""
    posts, news = (finding(WindowSize(600_000, 0.1), profile=name) for name in ("posts", "news"))
    assert (posts.status, news.status) == ("warning", "ok")
    assert "a look-up reads about 220 postings and 24 candidates, and from 458,000 articles on" in posts.found


def test_a_feed_of_files_has_no_group_to_move() -> None:
    """It is judged again, into a new store."""
    found = finding(WindowSize(5_000_000, 0.1), source="feed.jsonl")
    assert (found.remedy or "").startswith("Judge the window again, with a new store: dupwatch backfill FILE")
    assert "migrate" not in (found.remedy or "")


@pytest.mark.parametrize(
    ("size", "planned", "plan", "remote", "status"),
    [
        # Only what is certain but for one sample in forty counts.
        (WindowSize(2_600_000, 0.2), None, "4x16", True, "ok"),
        (WindowSize(3_000_000, 0.2), None, "4x16", True, "warning"),
        (WindowSize(10**9, None), None, "4x16", True, "ok"),
        # The plan was chosen for that many articles.
        (WindowSize(5_000_000, 0.1), CapacityPlan(5_000_000, "4x16"), "4x16", True, "ok"),
        (WindowSize(6_000_000, 0.1), CapacityPlan(5_000_000, "4x16"), "4x16", True, "warning"),
        (WindowSize(6_000_000, 0.1), None, "4x16", False, "ok"),
        (WindowSize(30_000_000, 0.1), None, "4x16", False, "warning"),
        (WindowSize(10**10, 0.1), None, "16x28", True, "ok"),
        (WindowSize(1_900_000, 0.0), CapacityPlan(1_000_000, "16x28"), "16x28", True, "ok"),
        (WindowSize(2_100_000, 0.0), CapacityPlan(1_000_000, "16x28"), "16x28", True, "warning"),
    ],
)
def test_when_it_warns(size: WindowSize, planned: CapacityPlan | None, plan: str, remote: bool, status: str) -> None:  # noqa: FBT001  # a parameter
    """Beyond the limit of the kind of store, unless it was planned; and beyond twice the articles expected."""
    assert finding(size, planned, plan=plan, remote=remote).status == status


def test_a_window_of_twice_the_articles_expected() -> None:
    """The plan may still fit, and disks may not."""
    found = finding(WindowSize(2_100_000, 0.0), CapacityPlan(1_000_000, "16x28"), plan="16x28")
    assert found.found.endswith("of 1,000,000 expected. The plan 16x28 still fits.")
    assert f"dupwatch store init --articles 2100000 --store {STORE}." in (found.remedy or "")
