"""The fact guard and the slot guard on the command line: set for all or for one source, and explained."""

import json
from pathlib import Path

import pytest

from tests.cli.command import FAST, Command, json_lines, write_lines

FRAME = (
    "{} said on {} that sales rose {}% to {} million dollars in the quarter. The board will keep its strategy the same "
    "and go on investing in new products while holding down expenses, and the management will explain the results in "
    "a conference call that is open to shareholders and to the press. Analysts who follow the sector said the outlook "
    "had become a little brighter, with order books filling again after a slow start to the year, but warned that "
    "competition on price remained fierce. A recording will be made available on the website for those who missed it."
)
STORY = FRAME.format("Tallis Foods", "12 March", "4.2", "310")
CORRECTED = FRAME.format("Tallis Foods", "12 March", "4.5", "310")
OTHER = FRAME.format("Halden Energy", "3 June", "11.8", "97")
ARTICLES = [
    {"id": "story", "body": STORY, "source": "wire"},
    {"id": "other", "body": OTHER, "source": "exchange"},
    {"id": "corrected", "body": CORRECTED, "source": "wire"},
]
GUARD = ("--set", "judge.facts_shared_min=0.8")
SLOTS = ("--set", "judge.facts=slots")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The three texts as files."""
    paths = tuple(tmp_path / f"{article['id']}.txt" for article in ARTICLES)
    for path, article in zip(paths, ARTICLES, strict=True):
        path.write_text(article["body"])
    return paths[0], paths[1], paths[2]


@pytest.mark.parametrize(
    ("rules", "flagged"),
    [
        ("", {"other": "story", "corrected": "story"}),
        ("[judge]\nfacts_shared_min = 0.8\n", {"corrected": "story"}),
        ("[rules.exchange]\nfacts_shared_min = 0.8\n", {"corrected": "story"}),
        ("[rules.paper]\nfacts_shared_min = 0.8\n", {"other": "story", "corrected": "story"}),
        ('[judge]\nfacts = "slots"\n', {}),
        ("[judge]\nslot_conflicts_max = 1\n", {"corrected": "story"}),
        ('[rules.exchange]\nfacts = "slots"\n', {"corrected": "story"}),
        ('[rules.paper]\nfacts = "slots"\n', {"other": "story", "corrected": "story"}),
    ],
)
def test_a_guard_is_set_for_all_or_for_a_source(
    dupwatch: Command, tmp_path: Path, rules: str, flagged: dict[str, str]
) -> None:
    """Another story is flagged without it and kept with it; its correction is flagged, unless its slots count."""
    (tmp_path / "feed.toml").write_text(rules)
    feed = write_lines(tmp_path / "feed.jsonl", ARTICLES)
    ended = dupwatch("run", "--source", feed, "--config", tmp_path / "feed.toml")
    assert ended.code == 0
    assert {verdict["id"]: verdict["duplicate_of"] for verdict in json_lines(ended.out)} == flagged


def test_workers_make_the_same_facts(dupwatch: Command, tmp_path: Path) -> None:
    """A process beside the judge's is told that the guard asks for them."""
    feed = write_lines(tmp_path / "feed.jsonl", ARTICLES)
    ended = dupwatch("run", "--source", feed, "--workers", "1", *GUARD)
    assert {verdict["id"]: verdict["duplicate_of"] for verdict in json_lines(ended.out)} == {"corrected": "story"}


def test_explain_shows_the_facts(dupwatch: Command, files: tuple[Path, Path, Path]) -> None:
    """Those of each article alone, those of both, and the share that was asked for."""
    story, other, corrected = files
    shown = dupwatch("explain", story, other, *GUARD).out.decode()
    for expected in (
        "✗  facts agree", "A has 5 facts, B has 5", "0.00 of the smaller set shared, minimum 0.8 if 3 or more differ",
        "0.00 of the larger set shared, minimum 0.6 if the other lacks 4 or more", "not near",
        "facts only in A: 12march  310  4.2", "only in B: 11.8  3june  97", "in both: –",
    ):  # fmt: skip
        assert expected in shown
    (near,) = json_lines(dupwatch("explain", story, corrected, "--json", *GUARD).out)
    assert (near["near"], near["facts_agree"], near["facts_a"], near["facts_b"]) == (True, True, 5, 5)
    assert (near["facts"]["only_a"], near["facts"]["only_b"]) == (["4.2"], ["4.5"])


def test_explain_shows_the_slots_that_differ(dupwatch: Command, tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    """Both values in their surroundings; a store without bodies has hashes alone."""
    story, _, corrected = files
    shown = dupwatch("explain", story, corrected, *SLOTS).out.decode()
    for expected in (
        "✗  facts agree", "slots with different values: 1, maximum 0", "not near",
        "slot …ose [ ] to*…: 4.2 in A, 4.5 in B",
    ):  # fmt: skip
        assert expected in shown
    (found,) = json_lines(dupwatch("explain", story, corrected, "--json", *SLOTS).out)
    assert (found["near"], found["slot_conflicts"], found["slot_conflicts_max"]) == (False, 1, 0)
    assert found["conflicting_slots"] == [{"slot": "…ose [ ] to*…", "a": "4.2", "b": "4.5"}]
    store = ("--store", f"lmdb:{tmp_path / 'store'}", "--set", "store.keep_bodies=false")
    feed = write_lines(tmp_path / "feed.jsonl", ARTICLES)
    assert dupwatch("run", "--source", feed, *store, *SLOTS, *FAST).code == 0
    (stored,) = json_lines(dupwatch("explain", "story", "corrected", "--json", *store).out)
    assert (stored["slot_conflicts"], stored["conflicting_slots"]) == (1, None)


def test_explain_without_a_guard_asks_for_no_facts(dupwatch: Command, files: tuple[Path, Path, Path]) -> None:
    """The condition holds, and says why."""
    shown = dupwatch("explain", *files[:2]).out.decode()
    assert "not checked: facts_shared_min is 0" in shown
    assert "facts only in A" not in shown
    (found,) = json_lines(dupwatch("explain", *files[:2], "--json").out)
    assert (found["facts"], found["facts_shared"], found["facts_shared_min"]) == (None, None, 0)


def test_explain_tells_counts_where_there_are_no_texts(dupwatch: Command, tmp_path: Path) -> None:
    """A store without bodies has the hashes of facts only; which ones they are it cannot say."""
    store = ("--store", f"lmdb:{tmp_path / 'store'}", "--set", "store.keep_bodies=false")
    feed = write_lines(tmp_path / "feed.jsonl", ARTICLES)
    assert dupwatch("run", "--source", feed, *store, *GUARD, *FAST).code == 0
    shown = dupwatch("explain", "story", "other", *store).out.decode()
    assert "A has 5 facts, B has 5; listing them needs the texts." in shown
    assert "✗  facts agree" in shown


def test_a_store_is_bound_to_its_guard(dupwatch: Command, tmp_path: Path) -> None:
    """It cannot be switched on or off among articles that were judged otherwise; the difference is named."""
    feed = write_lines(tmp_path / "feed.jsonl", ARTICLES)
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    assert dupwatch("run", "--source", feed, *store, *FAST).code == 0
    refused = dupwatch("run", "--source", feed, *store, *GUARD, *FAST)
    assert refused.code == 4
    assert "facts_shared_min is null in the store and 0.8 here" in refused.err
    refused = dupwatch("run", "--source", feed, *store, *SLOTS, *FAST)
    assert refused.code == 4
    assert "slot_conflicts_max is null in the store and 0 here" in refused.err
    assert "dupwatch migrate" in refused.err


def test_the_guard_is_shown_with_the_configuration(dupwatch: Command) -> None:
    """As every other setting, and off where nothing is set."""
    assert "judge.facts_shared_min = 0.0\n" in dupwatch("config", "show").out.decode()
    assert "judge.facts_shared_min = 0.8\n" in dupwatch("config", "show", *GUARD).out.decode()


def test_the_facts_in_json_are_lists_in_order(dupwatch: Command, files: tuple[Path, Path, Path]) -> None:
    """So that equal articles give equal output."""
    once, again = (dupwatch("explain", *files[:2], "--json", *GUARD).out for _ in range(2))
    assert json.loads(once)["facts"] == json.loads(again)["facts"]
    assert json.loads(once)["facts"]["only_b"] == sorted(json.loads(once)["facts"]["only_b"])


def test_a_store_of_the_first_revision_goes_on_and_doctor_says_so(dupwatch: Command, tmp_path: Path) -> None:
    """A bare frame hides another story there, and no longer in a new store; explain says which facts it lacks."""
    bare = FRAME.replace("{}", "").replace("  ", " ")
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "bare", "body": bare}, *ARTICLES])
    old, new = ("--store", f"lmdb:{tmp_path / 'old'}"), ("--store", f"lmdb:{tmp_path / 'new'}")
    for store, first, flagged in ((old, ("--set", "judge.facts_revision=1"), 3), (new, (), 1)):
        ended = dupwatch("run", "--source", feed, *store, *GUARD, *first, *FAST)
        assert len(json_lines(ended.out)) == flagged
        later = write_lines(tmp_path / "later.jsonl", [{"id": "later", "body": OTHER.replace("11.8", "12.9")}])
        (again,) = json_lines(dupwatch("run", "--source", later, *store, *GUARD, *FAST).out)
        assert again["duplicate_of"] == ("bare" if flagged == 3 else "other")
    warned, fine = (dupwatch("doctor", "--source", feed, *store, *GUARD) for store in (old, new))
    assert (warned.code, fine.code) == (0, 0)
    assert "! warning: The fact guard (facts_shared_min) has revision 1" in warned.out.decode()
    assert "dupwatch migrate" in warned.out.decode()
    assert "revision 1" not in fine.out.decode()
    by_the_first, by_the_second = (dupwatch("explain", "bare", "story", *store).out.decode() for store in (old, new))
    assert "A has 0 facts, B has 5" in by_the_first
    assert "✓  facts agree" in by_the_first
    assert "✗  facts agree" in by_the_second
    assert "0.00 of the larger set shared, minimum 0.6 if the other lacks 4 or more" in by_the_second
