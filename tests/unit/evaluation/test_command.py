"""``dupwatch evaluate`` over the sample feed, whose labels are turned into pairs, and over small feeds."""

import gzip
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from consumer.cli import plots
from consumer.cli.main import app
from consumer.fingerprint import Engine, Fingerprinter, Fingerprints
from consumer.fingerprint.compiled import CompiledFingerprinter
from consumer.model.errors import ConfigError, SinkError, SourceError
from consumer.text.install_advice import install_command

SAMPLE = Path(__file__).parents[3] / "sample"
FEED = SAMPLE / "feed.jsonl"
LONG = "The {} of the harbour opened on Monday, said the mayor, and ferries to the seven islands run every hour again."

Rows = Iterable[object]
Write = Callable[[str, Rows], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows as JSON lines, bytes unchanged; return the path."""

    def lines(name: str, rows: Rows) -> Path:
        path = tmp_path / name
        parts = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        data = b"".join(part + b"\n" for part in parts)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return lines


@pytest.fixture
def sample_pairs() -> Path:
    """Return the labelled pairs of the sample feed."""
    return SAMPLE / "pairs.jsonl"


def evaluated(feed: Path, pairs: Path, *options: str) -> dict[str, Any]:
    """Return the JSON of the command."""
    result = CliRunner().invoke(app, ["evaluate", str(feed), "--pairs", str(pairs), "--json", *options])
    assert result.exception is None, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def failure(feed: Path, pairs: Path, *options: str) -> BaseException | None:
    """Return how the command ended."""
    return CliRunner().invoke(app, ["evaluate", str(feed), "--pairs", str(pairs), *options]).exception


def point(found: dict[str, Any], setting: str, threshold: float) -> tuple[int, int]:
    """Return right and wrong of one threshold."""
    (curve,) = (each for each in found["evaluation"]["curves"] if each["setting"] == setting)
    (point,) = (point for point in curve["points"] if point["threshold"] == threshold)
    return point["right"], point["wrong"]


def judged(found: dict[str, Any]) -> tuple[int, int]:
    """Return right and wrong of the judge as it is configured."""
    return found["evaluation"]["judge"]["right"], found["evaluation"]["judge"]["wrong"]


def test_sample_feed(sample_pairs: Path) -> None:
    """The defaults find every labelled duplicate of the sample feed and flag no labelled unique pair."""
    found = evaluated(FEED, sample_pairs)
    duplicates = found["evaluation"]["duplicates"]
    assert (duplicates, found["evaluation"]["unique"], found["left_out_pairs"]) == (116, 44, 14)
    assert judged(found) == (duplicates, 0)
    assert found["evaluation"]["judge"]["recall"]["low"] == pytest.approx(0.968, abs=5e-4)
    assert [each["setting"] for each in found["recommended"]] == ["max_distance", "similarity_min", "reach"]
    assert found["recommended"][1]["best_f1"]["point"]["threshold"] == found["recommended"][1]["now"]


def test_labels_of_articles_are_not_pairs() -> None:
    """The error for the wrong file of the sample shows the form of a pair."""
    error = failure(FEED, SAMPLE / "labels.jsonl")
    assert isinstance(error, ConfigError)
    assert '\'label\'; write ["id", "id", label] or {"a": "id",' in str(error)


@pytest.mark.parametrize("bits", [0, 3, 5, 7])
def test_the_distance_curve_is_what_the_judge_does_without_verification(sample_pairs: Path, bits: int) -> None:
    """Each point has the counts of a judge with that setting."""
    curves = evaluated(FEED, sample_pairs)
    plain = ("judge.verify=false", "judge.lane1=false", f"judge.max_distance={bits}")
    assert judged(evaluated(FEED, sample_pairs, *_set(*plain))) == point(curves, "max_distance", bits)


@pytest.mark.parametrize("reach", [3, 6, 12])
def test_the_reach_curve_is_what_the_judge_does(sample_pairs: Path, reach: int) -> None:
    """Each point has the counts of a judge with that reach, also where only blocks find pairs."""
    blocks_only = _set("judge.lane1=false", "judge.similarity_min=0.4")
    curves = evaluated(FEED, sample_pairs, *blocks_only)
    judge = judged(evaluated(FEED, sample_pairs, *blocks_only, *_set(f"judge.reach={reach}")))
    assert judge == point(curves, "reach", reach)
    assert point(curves, "reach", 3) < point(curves, "reach", 12)


def test_the_reach_curve_is_with_verification(sample_pairs: Path) -> None:
    """It shows what verification would do, also where it is off."""
    as_is = evaluated(FEED, sample_pairs, *_set("judge.lane1=false", "judge.max_distance=5"))
    plain = evaluated(FEED, sample_pairs, *_set("judge.lane1=false", "judge.max_distance=5", "judge.verify=false"))
    assert judged(plain) != judged(as_is)
    assert plain["evaluation"]["curves"] == as_is["evaluation"]["curves"]


@pytest.mark.parametrize("similarity", [0.6, 0.8, 0.9])
def test_the_similarity_curve_is_what_the_judge_does_where_all_is_found(sample_pairs: Path, similarity: float) -> None:
    """The look-up finds all similar pairs of the sample feed, so each point has the counts of such a judge."""
    judge = judged(evaluated(FEED, sample_pairs, *_set(f"judge.similarity_min={similarity}")))
    assert judge == point(evaluated(FEED, sample_pairs), "similarity_min", similarity)


def _set(*settings: str) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def test_tables_say_the_same_as_json(sample_pairs: Path) -> None:
    """The plain output has figures, recommendation and caveats, in lines of a terminal's width."""
    arguments = ["evaluate", str(FEED), "--pairs", str(sample_pairs), "--precision", "0.98"]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    found = evaluated(FEED, sample_pairs, "--precision", "0.98")
    assert "bits right wrong precision precision 95 % recall recall 95 % F1" in lines
    distance, similarity, _ = found["evaluation"]["curves"]
    assert f"3 {_row(distance, 3)} now" in lines
    now = found["recommended"][1]["now"]
    assert f"{now} {_row(similarity, now)} now F1 P" in lines
    ties = found["recommended"][1]["reaching"]["ties"]
    assert f"similarity_min {now} precision 0.98 {now} {min(ties):.2f} to {max(ties)} 1.000 1.000 1.000" in lines
    assert "Recall counts labelled duplicates only" in result.stdout
    assert "…" not in result.stdout
    assert "between --unique-below and --duplicate-from: 14." in result.stderr


def _row(curve: dict[str, Any], threshold: float) -> str:
    """Return how the table has a point."""
    (point,) = (each for each in curve["points"] if each["threshold"] == threshold)
    rates = (
        f"{rate['value']:.3f} {rate['low']:.3f}–{rate['high']:.3f}" for rate in (point["precision"], point["recall"])
    )
    return f"{point['right']} {point['wrong']} {' '.join(rates)} {point['f1']:.3f}"


def profiles(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return right and wrong of each profile."""
    return {each["profile"]: (each["figures"]["right"], each["figures"]["wrong"]) for each in found["profiles"]}


@pytest.mark.parametrize("configured", ["news", "posts"])
def test_profiles_are_compared_as_stores_of_them_judge(sample_pairs: Path, configured: str) -> None:
    """Whatever is configured: each has the figures that it has where it is the configured one."""
    found = evaluated(FEED, sample_pairs, *_set(f"judge.profile={configured}", "rules={}"))
    assert profiles(found)[configured] == judged(found)
    assert profiles(found) == {"news": (116, 0), "posts": (116, 13)}


def test_the_better_profile_is_recommended(sample_pairs: Path, write: Write) -> None:
    """The one that finds more with enough precision, or else the best F1."""
    arguments = ["evaluate", str(FEED), "--pairs", str(sample_pairs)]
    assert "Recommended: news, the best recall with precision 0.995" in CliRunner().invoke(app, arguments).stdout
    post, headline = LONG.format("market"), "Look at this, neighbours, the old mayor was right after all these years! "
    feed = write("feed.jsonl", [{"id": "a", "body": post}, {"id": "b", "body": headline + post}])
    pairs = write("pairs.jsonl", [["a", "b", True]])
    shown = CliRunner().invoke(app, ["evaluate", str(feed), "--pairs", str(pairs)]).stdout
    assert "Recommended: posts, the best recall with precision 0.995" in shown


@pytest.mark.parametrize("setting", ["fingerprint.scheme=jieba-tfidf/2", "judge.verify=false"])
def test_other_judges_have_no_profiles(sample_pairs: Path, setting: str) -> None:
    """Their similarities mean something else, or decide nothing."""
    found = evaluated(FEED, sample_pairs, *_set(setting, "judge.lane1=false"))
    assert found["profiles"] == []


def test_recommended_is_only_what_can_be_set(sample_pairs: Path) -> None:
    """No distance is recommended at which the plan misses pairs, and no reach below the distance."""
    found = evaluated(FEED, sample_pairs, *_set("judge.max_distance=5", "judge.reach=5"))
    distance, _, reach = found["recommended"]
    assert point(found, "max_distance", 9) > point(found, "max_distance", 7)
    assert distance["best_f1"]["point"]["threshold"] == 7
    assert min(reach["best_f1"]["ties"]) == 5
    assert [(each["lowest"], each["highest"]) for each in (distance, reach)] == [(0, 7), (5, 16)]


@pytest.mark.parametrize(("plan", "highest"), [("4x16", 7), ("16x28", 4)])
def test_thresholds_that_cannot_be_set_are_marked(sample_pairs: Path, plan: str, highest: int) -> None:
    """In both tables, by the plan that is configured, with a sentence that says why."""
    arguments = ["evaluate", str(FEED), "--pairs", str(sample_pairs), *_set(f"judge.plan={plan}")]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})
    _, by_distance, by_similarity, by_reach = re.split(
        r"^(?:max_distance|similarity_min|reach): ", result.stdout, flags=re.MULTILINE
    )
    marked = [
        [int(line.split()[0]) for line in table.splitlines() if re.match(r"\s*\d+ .* ✗$", line.rstrip())]
        for table in (by_distance, by_similarity, by_reach)
    ]
    assert marked == [list(range(highest + 1, 17)), [], [0, 1, 2]]
    assert f"✗ The plan {plan} misses some pairs more than {highest} bits apart" in by_distance
    assert "✗ reach is at least max_distance, 3." in by_reach


def test_short_and_empty_texts_are_equal_or_are_not(write: Write) -> None:
    """No threshold flags different short texts or empty ones; every threshold flags equal short texts."""
    bodies = {"a": "Ferry late", "b": "FERRY  late", "c": "Ferry later", "e": "", "f": "", "g": LONG.format("market")}
    feed = write("feed.jsonl", [{"id": name, "body": body} for name, body in bodies.items()])
    pairs = write(
        "pairs.jsonl", [["a", "b", True], ["a", "c", False], ["e", "f", False], ["a", "g", False], ["e", "g", False]]
    )
    found = evaluated(feed, pairs)
    for curve in found["evaluation"]["curves"]:
        assert {(point["right"], point["wrong"]) for point in curve["points"]} == {(1, 0)}
    assert judged(found) == (1, 0)


def _noting(engine: type[Engine], texts: list[str]) -> Callable[..., Fingerprints]:
    compute: Callable[..., Fingerprints] = vars(engine)["fingerprint"]

    def fingerprint(self: Engine, bodies: list[str], languages: list[str]) -> Fingerprints:
        texts.extend(bodies)
        return compute(self, bodies, languages)

    return fingerprint


def test_only_named_articles_are_fingerprinted(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Articles in no pair are not fingerprinted; of a repeated id the first text counts, with a notice."""
    feed = write(
        "feed.jsonl.gz",
        [{"id": 1, "body": LONG.format("market")}, {"id": "x", "body": "nobody asks"}, {"id": "1", "body": "new"},
         {"id": "2", "body": LONG.format("market")}, {"id": "2", "body": None}],
    )  # fmt: skip
    texts: list[str] = []
    for engine in (Fingerprinter, CompiledFingerprinter):
        monkeypatch.setattr(engine, "fingerprint", _noting(engine, texts))
    found = evaluated(feed, write("pairs.jsonl.gz", [{"a": 1, "b": "2", "label": 1}]))
    # Once as configured, which is as the profile of news has it, and once as that of posts.
    assert texts == [LONG.format("market")] * 2 * 2
    assert (found["articles"], found["repeated_ids"], judged(found)) == (2, 1, (1, 0))


def test_bad_records_are_counted_and_reported(write: Write) -> None:
    """Invalid records are skipped and counted by reason."""
    rows = [{"id": "a", "body": LONG.format("pier")}, b"{", {"body": "x"}, {"id": "b", "body": LONG.format("pier")}]
    feed, pairs = write("feed.jsonl", rows), write("pairs.jsonl", [["a", "b", True]])
    assert evaluated(feed, pairs)["bad_records"] == {"invalid_json": 1, "missing_id": 1}
    stderr = CliRunner().invoke(app, ["evaluate", str(feed), "--pairs", str(pairs)]).stderr
    assert "Skipped invalid records in the feed: 2 (invalid_json 1, missing_id 1)." in stderr


def test_ids_that_the_feed_does_not_have_are_an_error(write: Write) -> None:
    """The first few are listed with their lines, a retraction has no text, and the exit code is 2."""
    feed = write("feed.jsonl", [{"id": "a", "body": "x"}, {"id": "gone", "body": None}])
    pairs = write("pairs.jsonl", [["a", "gone", True], *(["a", f"n{number}", False] for number in range(7))])
    error = failure(feed, pairs)
    assert isinstance(error, ConfigError)
    assert error.exit_code == 2
    assert "'gone' (line 1), 'n0' (line 2), 'n1' (line 3), 'n2' (line 4), 'n3' (line 5) and 3 more" in str(error)


def test_pairs_that_cannot_be_read_are_an_error(write: Write, tmp_path: Path) -> None:
    """An invalid line, a missing file, a damaged file and crossing cuts are different errors."""
    feed, good = write("feed.jsonl", []), write("pairs.jsonl", [["a", "b", True]])
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(gzip.compress(b'["a", "b", true]\n' * 1000)[:-12])
    assert "line 1 of the pairs" in str(failure(feed, write("wrong.jsonl", [["a"]])))
    assert isinstance(failure(feed, tmp_path / "none.jsonl"), SourceError)
    assert isinstance(failure(feed, damaged), SourceError)
    crossed = failure(feed, good, "--unique-below", "0.9")
    assert isinstance(crossed, ConfigError)
    assert "--unique-below 0.9 is above --duplicate-from 0.8" in str(crossed)


def test_the_cuts_can_be_moved(sample_pairs: Path) -> None:
    """With equal cuts no similarity is left out."""
    found = evaluated(FEED, sample_pairs, "--duplicate-from", "0.6", "--unique-below", "0.6")
    assert found["left_out_pairs"] == 0
    assert found["evaluation"]["duplicates"] + found["evaluation"]["unique"] == 174


def test_a_plot_without_the_library(sample_pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib the error says how to install it, before anything is read."""
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    error = failure(tmp_path / "none.jsonl", sample_pairs, "--plot", str(tmp_path / "plot.png"))
    assert isinstance(error, ConfigError)
    assert str(error).endswith(install_command("plot"))


def test_a_plot_of_another_kind_is_refused(sample_pairs: Path, tmp_path: Path) -> None:
    """A name that ends in neither PNG nor SVG is a wrong option."""
    error = failure(FEED, sample_pairs, "--plot", str(tmp_path / "plot.jpeg"))
    assert isinstance(error, ConfigError)
    assert ".png or .svg" in str(error)


def test_plots(sample_pairs: Path, tmp_path: Path) -> None:
    """The file has the format of its name, with every curve in the legend; a missing folder is an error."""
    pytest.importorskip("matplotlib")
    png, svg = tmp_path / "plot.PNG", tmp_path / "plot.svg"
    for path in (png, svg):
        evaluated(FEED, sample_pairs, "--plot", str(path))
    assert png.read_bytes().startswith(b"\x89PNG")
    drawn = svg.read_text()
    for name in ("precision", "recall", "F1", "configured", "best F1", "maximum Hamming distance (bits)"):
        assert f"<!-- {name} -->" in drawn
    assert isinstance(failure(FEED, sample_pairs, "--plot", str(tmp_path / "none" / "plot.svg")), SinkError)


PARTS = (
    "The {0} council met on Tuesday and spoke for four hours about the old quay, the price of coal and the roof. "
    "Nobody had expected the vote on the ferry to be so close, said the chair, who had counted every hand twice. "
    "After the break the members heard from the harbour master, who brought three maps, a rope and a broken lantern. "
    "He asked for a new light on the northern wall before the winter storms, and for two men to keep it burning."
)
OTHER = (
    "Gardeners in the {0} valley planted four hundred apple trees this spring, most of them of kinds long forgotten. "
    "The cider makers next door lent their cart, their horse and, for one long evening, their oldest barrel as well. "
    "Bees arrived in May from a monastery in the hills, and with them a monk who would not stop laughing at the rain. "
)


def parts_fed(write: Write) -> Path:
    """A feed in which "half" begins with a stretch of "whole", and "stranger" shares nothing."""
    whole = PARTS.format("town")
    rows = {
        "whole": whole,
        "stranger": OTHER.format("upper"),
        "half": whole[: len(whole) * 2 // 3] + OTHER.format("low"),
    }
    return write("parts.jsonl", [{"id": name, "body": body} for name, body in rows.items()])


def test_parts_are_measured_on_labelled_pairs(write: Write) -> None:
    """Named pairs are right or wrong by their labels, and those without a label are counted apart."""
    feed = parts_fed(write)
    found = evaluated(feed, write("pairs", [["half", "whole", True], ["whole", "stranger", False]]), "--parts")
    evaluation = found["evaluation"]
    assert (evaluation["parts"], evaluation["others"], found["articles"]) == (1, 1, 3)
    assert (evaluation["figures"]["right"], evaluation["figures"]["wrong"]) == (1, 0)
    # What "half" has of "stranger" is a part that has no label.
    assert evaluation["unlabelled"] == 1
    wrong = evaluated(feed, write("wrong", [["half", "stranger", False], ["whole", "stranger", True]]), "--parts")
    assert (wrong["evaluation"]["figures"]["right"], wrong["evaluation"]["figures"]["wrong"]) == (0, 1)
    assert wrong["evaluation"]["figures"]["recall"]["value"] == 0


def test_what_is_near_counts_as_named(write: Write) -> None:
    """A verdict names it, though not as a part."""
    whole = PARTS.format("town")
    feed = write("near", [{"id": "a", "body": whole}, {"id": "b", "body": f"{whole} And so on."}])
    found = evaluated(feed, write("pairs", [["b", "a", True]]), "--parts")
    assert found["evaluation"]["figures"]["right"] == 1


def test_parts_are_told_in_words(write: Write) -> None:
    """And what goes wrong is said as without ``--parts``."""
    feed, pairs = parts_fed(write), write("pairs", [["half", "whole", True]])
    shown = CliRunner().invoke(app, ["evaluate", str(feed), "--pairs", str(pairs), "--parts"])
    assert shown.exception is None, shown.output
    assert "Verdicts name 1 of 1 labelled parts, and 0 of 0 pairs that are labelled as not parts." in shown.stdout
    assert "recall 1.000 (0.207–1.000)" in shown.stdout
    unknown = failure(feed, write("unknown", [["half", "nobody", True]]), "--parts")
    assert "nobody" in str(unknown)
    assert "--plot" in str(failure(feed, pairs, "--parts", "--plot", "curves.svg"))
