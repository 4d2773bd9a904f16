"""``explain`` shows what it compared, with which settings, and the value of every condition."""

import json
import re
from pathlib import Path

import pytest

from consumer.cli.articles import difference_view
from consumer.fingerprint import PUBLISHED_SECRET, Scheme
from tests.cli.command import FAST, Command, json_lines, run_process, text, write_lines
from tests.processor_time import within_processor_s

DEFAULT = Scheme().definition.similarity_min
LONG = [text(seed, 500) for seed in range(12)]


@pytest.fixture
def history(dupwatch: Command, tmp_path: Path) -> tuple[str, str]:
    """The option for a store where ``a`` was judged, then replaced, then retracted, with a copy of each version."""
    records = [
        {"id": "early", "body": text(7)},
        {"id": "a", "body": text(1), "source": "wire"},
        {"id": "copy", "body": f"{text(1)} again", "source": "paper"},
        {"id": "a", "body": text(2), "source": "wire"},
        {"id": "late", "body": text(1), "source": "wire"},
        {"id": "a", "body": None},
    ]
    feed = write_lines(tmp_path / "feed.jsonl", records)
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    assert dupwatch("run", "--source", feed, *store, *FAST).code == 0
    return store


def found_for(shown: str, condition: str) -> tuple[str, str]:
    """Return the mark of a condition, and the text beside it."""
    match = re.search(rf"^ (\S)\s+{condition}\s{{2,}}(.*?)\s*$", shown, re.MULTILINE)
    assert match, shown
    return match[1], match[2]


def test_a_difference_after_thousands_of_words_is_shown(dupwatch: Command, tmp_path: Path) -> None:
    """A long equal beginning does not cut off the rest silently."""
    (tmp_path / "a.txt").write_text(f"{' '.join(LONG)} first {LONG[0]}")
    (tmp_path / "b.txt").write_text(f"{' '.join(LONG)} second {LONG[0]}")
    arguments = ("explain", tmp_path / "a.txt", tmp_path / "b.txt")
    shown = dupwatch(*arguments).out.decode()
    assert "[-first-]{+second+}" in shown
    assert "Not compared" not in shown
    (found,) = json_lines(dupwatch(*arguments, "--json").out)
    at = len(" ".join(LONG)) + 1
    assert found["difference"] == [
        {"at_a": at, "a": "first", "at_b": at, "b": "second", "compared": True, "moved": False}
    ]


def test_text_that_moved_is_told_from_text_that_changed(dupwatch: Command, tmp_path: Path) -> None:
    """It is marked where it was and where it is, and a note says what the marks mean."""
    sentence, rest = "The port pays half of the cost of the new landing", " ".join(LONG[:40])
    (tmp_path / "a.txt").write_text(f"{sentence}. {rest} first.")
    (tmp_path / "b.txt").write_text(f"{rest} second. {sentence}.")
    arguments = ("explain", tmp_path / "a.txt", tmp_path / "b.txt")
    shown = " ".join(dupwatch(*arguments).out.decode().split())
    for expected in (f"[~{sentence}", "{~", "[-first-]", "{+second", "it has moved"):
        assert expected in shown
    (found,) = json_lines(dupwatch(*arguments, "--json").out)
    moved = [change for change in found["difference"] if change["moved"]]
    assert [change["a"].strip(". ") + change["b"].strip(". ") for change in moved] == [sentence] * 2


def test_what_is_not_compared_is_said(dupwatch: Command, tmp_path: Path) -> None:
    """Passages that are too long and too different are marked as a whole, with their sizes and a note."""
    (tmp_path / "a.txt").write_text("甲" * 15_000)
    (tmp_path / "b.txt").write_text("乙" * 16_000)
    arguments = ("explain", tmp_path / "a.txt", tmp_path / "b.txt")
    shown = dupwatch(*arguments).out.decode()
    assert "Not compared: 15,000 characters of A with 16,000 of B, in 1 place where the texts differ too much" in shown
    assert "… 14,600 more characters …" in shown
    (found,) = json_lines(dupwatch(*arguments, "--json").out)
    assert [(len(sentence["a"]), len(sentence["b"]), sentence["compared"]) for sentence in found["difference"]] == [
        (15_000, 16_000, False)
    ]


def test_equal_texts_are_said_to_be_equal(dupwatch: Command, tmp_path: Path) -> None:
    """Other texts are not."""
    (tmp_path / "a.txt").write_text(text(1))
    (tmp_path / "b.txt").write_text(f"{text(1)} more")
    expected = "The texts are identical."
    assert expected in dupwatch("explain", tmp_path / "a.txt", tmp_path / "a.txt").out.decode()
    assert expected not in dupwatch("explain", tmp_path / "a.txt", tmp_path / "b.txt").out.decode()


def test_changes_that_are_not_shown_are_counted(
    dupwatch: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output says how many changes are omitted."""
    monkeypatch.setattr(difference_view, "CHANGES_SHOWN_MAX", 3)
    words = [f"word{number}" for number in range(20)]
    (tmp_path / "a.txt").write_text(" ".join(words))
    (tmp_path / "b.txt").write_text(" ".join(word.upper() if number % 4 else word for number, word in enumerate(words)))
    shown = dupwatch("explain", tmp_path / "a.txt", tmp_path / "b.txt").out.decode()
    assert shown.count("[-") == 3
    assert "Showing the first 3 of 15 changes; use --json for all." in shown


def test_a_megabyte_is_explained_at_once(dupwatch: Command, tmp_path: Path) -> None:
    """Two long texts without common passages take little processor time beyond fingerprints and start-up."""
    body = "".join(chr(0x4E00 + number * number % 2_999) for number in range(330_000))
    (tmp_path / "a.txt").write_text(body)
    (tmp_path / "b.txt").write_text(re.sub("(.{90}).", r"\1改", body))
    with within_processor_s(20):
        assert dupwatch("explain", tmp_path / "a.txt", tmp_path / "b.txt").code == 0


def test_the_gap_and_the_window_are_shown(dupwatch: Command, tmp_path: Path, history: tuple[str, str]) -> None:
    """The time between the two arrivals, and the largest allowed one."""
    shown = dupwatch("explain", "early", "copy", *history, "--set", "judge.window_s=3600").out.decode()
    assert found_for(shown, "within the window") == ("✓", "arrived 0 s apart, maximum 3600 s")
    (tmp_path / "now.txt").write_text(text(7))
    (found,) = json_lines(dupwatch("explain", "early", tmp_path / "now.txt", "--json", *history).out)
    assert found["apart_ms"] > 0
    assert found["window_ms"] == 604_800_000
    shown = dupwatch("explain", "early", tmp_path / "now.txt", *history).out.decode()
    _, window = found_for(shown, "within the window")
    assert re.fullmatch(r"arrived [0-9.]+ s apart, maximum 604800 s", window)
    assert not window.startswith("arrived 0 s")


def test_both_in_force_is_told_from_the_facts(dupwatch: Command, history: tuple[str, str]) -> None:
    """Which arrived first, whether it was in force when the other arrived, and what replaced it."""
    shown = dupwatch("explain", "early", "copy", *history).out.decode()
    mark, why = found_for(shown, "both in force")
    assert mark == "✓"
    assert re.fullmatch(r"A arrived first, 20\S+Z, and is still in force", why)
    old = version_of(dupwatch, history, 0)
    shown = dupwatch("explain", "late", "a", "--version-b", old, *history, COLUMNS="300").out.decode()
    mark, why = found_for(shown, "both in force")
    assert mark == "✗"
    assert re.fullmatch(
        r"B arrived first, \S+Z, and was replaced by another version \S+Z \(record 4 of the feed\); "
        r"A arrived \S+Z \(record 5 of the feed\)",
        why,
    )
    mark, why = found_for(dupwatch("explain", "copy", "a", "--version-b", old, *history).out.decode(), "both in force")
    assert (mark, "replaced by another version" in why) == ("✓", True)
    mark, why = found_for(dupwatch("explain", "late", "a", *history).out.decode(), "both in force")
    assert (mark, "retracted" in why) == ("✓", True)


def version_of(dupwatch: Command, store: tuple[str, str], number: int) -> str:
    """Return the name of one of the versions of ``a``."""
    links = json.loads(dupwatch("show", "a", "--json", *store).out)
    version: str = links[0]["history"][number]["version"]
    return version


def test_every_condition_says_what_was_found(dupwatch: Command, history: tuple[str, str]) -> None:
    """No value is blank."""
    shown = dupwatch("explain", "a", "copy", *history).out.decode()
    rows = re.findall(r"^ [✓✗]\s{2}(.+?)(?:\s{2,}(.*?))?\s*$", shown, re.MULTILINE)
    assert len(rows) == 10
    assert all(found for _, found in rows)
    assert found_for(shown, "different ids") == ("✓", "a and copy")
    assert found_for(shown, "same scheme") == ("✓", f"both jieba-tfidf/3+{PUBLISHED_SECRET.id}")
    allowed = "allowed by the source rules"
    assert found_for(shown, allowed) == ("✓", "sources 'wire' and 'paper', which are compared with each other")
    apart = dupwatch("explain", "a", "copy", *history, "--set", 'rules.paper.never_with=["wire"]').out.decode()
    assert found_for(apart, allowed) == ("✗", "sources 'wire' and 'paper', which are not compared with each other")
    same = dupwatch("explain", "copy", "copy", *history).out.decode()
    assert found_for(same, "different ids") == ("✗", "both copy")


def test_settings_that_are_named_count_beside_a_store(dupwatch: Command, history: tuple[str, str]) -> None:
    """They apply to the pair, and a note lists those that differ from the store's."""
    asked = ("--set", "judge.similarity_min=0.999", "--set", "judge.max_distance=0")
    old = version_of(dupwatch, history, 0)
    pair = ("explain", "copy", "a", "--version-b", old, *history)
    (own,) = json_lines(dupwatch(*pair, "--json").out)
    (other,) = json_lines(dupwatch(*pair, "--json", *asked).out)
    assert (own["near"], own["similarity_min"], own["distance_max"], own["other_settings"]) == (True, DEFAULT, 3, [])
    assert (other["near"], other["similarity_min"], other["distance_max"]) == (False, 0.999, 0)
    assert other["other_settings"] == [
        "max_distance is 3 in the store and 0 here", f"similarity_min is {DEFAULT} in the store and 0.999 here",
    ]  # fmt: skip
    shown = dupwatch(*pair, *asked).out.decode()
    assert "Compared with settings that differ from the store's: max_distance is 3 in the store and 0 here" in shown
    assert "minimum 0.999" in shown
    assert "settings that differ" not in dupwatch(*pair, "--set", f"judge.similarity_min={DEFAULT}").out.decode()


def test_rules_that_are_named_count_too(dupwatch: Command, tmp_path: Path, history: tuple[str, str]) -> None:
    """Both from the configuration file and from an option."""
    (tmp_path / "rules.toml").write_text("[rules.paper]\nsimilarity_min = 0.99\n")
    old = version_of(dupwatch, history, 0)
    pair = ("explain", "copy", "a", "--version-b", old, "--json", *history)
    (found,) = json_lines(dupwatch(*pair, "--config", tmp_path / "rules.toml").out)
    assert (found["near"], found["similarity_min"]) == (False, 0.99)


@pytest.mark.parametrize(
    "setting",
    ["judge.lane1=false", "judge.plan=16x28", "fingerprint.keywords_max=20", "fingerprint.bands=8",
     "judge.facts_shared_min=0.8"],
)  # fmt: skip
def test_settings_that_made_the_records_cannot_be_changed(
    dupwatch: Command, history: tuple[str, str], setting: str
) -> None:
    """Stored records depend on them, so the command refuses others and says so."""
    ended = dupwatch("explain", "a", "copy", *history, "--set", setting)
    assert ended.code == 4
    assert "in the store and" in ended.err
    assert "Leave them out" in ended.err


def test_one_of_the_two_can_be_standard_input(tmp_path: Path) -> None:
    """Either of the two texts can be standard input, but not both."""
    (tmp_path / "a.txt").write_text(text(1))
    ended = run_process("explain", tmp_path / "a.txt", "-", "--json", given=text(1).encode())
    assert [line["near"] for line in json_lines(ended.out)] == [True]
    refused = run_process("explain", "-", "-", given=b"x")
    assert (refused.code, "both texts are standard input" in refused.err) == (2, True)


def test_only_an_id_has_versions(dupwatch: Command, tmp_path: Path, history: tuple[str, str]) -> None:
    """A version of a file, an unknown version and a retraction are refused, each with its reason."""
    (tmp_path / "a.txt").write_text(text(1))
    retraction = version_of(dupwatch, history, 2)
    for name, version, why in (
        (tmp_path / "a.txt", "00", "only ids have versions"),
        ("a", "ab" * 16, "has no version"),
        ("a", retraction, "is a retraction"),
    ):
        ended = dupwatch("explain", name, "copy", "--version-a", version, *history)
        assert (ended.code, why in ended.err) == (2, True), ended.err
