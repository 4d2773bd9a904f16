"""The benchmark on real texts counts what the scorer of the labelled sets counts, over the same flags."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks.quality.compare import judge_with_dupwatch
from benchmarks.quality.judging import some_secret
from benchmarks.quality.real.detectors import dupwatch
from benchmarks.quality.real.sets import read_sets
from benchmarks.quality.real.truth import Counts
from tests.dev_feed import FOLDER_VARIABLE, REQUIRED_VARIABLE, dev_data_dir
from tests.examples import drawn

SECRET = 0
PROFILES = {"weibo": "posts", "lianbo": "news", "sms": "posts", "chains": "posts", "telegram": "posts"}


@pytest.fixture
def labelled(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the labelled sets."""
    folder = dev_data_dir() / "real"
    for name in (FOLDER_VARIABLE, REQUIRED_VARIABLE):
        # They look like settings of dupwatch, which refuses unknown ones.
        monkeypatch.delenv(name, raising=False)
    if not (folder / "score.py").is_file():
        pytest.fail(f"{folder} has no score.py")
    return folder


def scored(folder: Path, name: str, verdicts: Path) -> str:
    """Return what the scorer prints."""
    command = [sys.executable, str(folder / "score.py"), str(folder), name, str(verdicts)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def numbers(printed: str, pattern: str) -> tuple[int, ...]:
    """Return the numbers in what the scorer prints."""
    found = re.search(pattern, printed)
    assert found is not None, printed
    return tuple(map(int, found.groups()))


def compared(name: str, printed: str, counts: dict[str, Counts]) -> None:
    """Compare the counts of a set's truths with what the scorer prints."""
    if name == "weibo":
        flags, same, variants, wrong = numbers(printed, r"(\d+) flags .*post (\d+), variant (\d+), .*wrong (\d+)")
        found, expected = numbers(printed, r"recall of same post (\d+)/(\d+)")
        assert counts == {name: Counts(flags, same + variants, wrong, found, expected, variants)}
    elif name == "lianbo":
        flags, same, equal, wrong = numbers(printed, r"(\d+) flags .*item (\d+), .*year (\d+), other facts (\d+)")
        assert counts == {name: Counts(flags, same + equal, wrong, 0, 0)}
    elif name == "sms":
        (flags,), (found, expected) = numbers(printed, r"(\d+) flags"), numbers(printed, r">= 0.5: (\d+)/(\d+)")
        mixed, unlike = numbers(printed, r"ham (\d+); flags of Jaccard < .4: (\d+)")
        assert (counts[name].flags, counts[name].found, counts[name].expected) == (flags, found, expected)
        assert max(mixed, unlike) <= counts[name].wrong == flags - counts[name].right <= mixed + unlike
    else:
        for real, count in counts.items():
            found, expected, wrong = numbers(printed, rf"{real}: .* flagged (\d+)/(\d+) .*; other pairs flagged (\d+)")
            assert (count.right, count.found, count.expected, count.wrong) == (found, found, expected, wrong)


@pytest.mark.parametrize("name", drawn(sorted(PROFILES), len(PROFILES)))
def test_the_figures_are_those_of_the_scorer(name: str, labelled: Path, tmp_path: Path) -> None:
    """One set in each run of the tests: the published figures for dupwatch are those of ``dupwatch run``."""
    secret, verdicts = tmp_path / "secret", tmp_path / "verdicts.jsonl"
    secret.write_text(some_secret(SECRET).hex())
    secret.chmod(0o600)
    settings = {"judge": {"profile": PROFILES[name]}, "fingerprint": {"secret_file": str(secret)}}
    judged = judge_with_dupwatch(labelled / f"{name}.jsonl.gz", settings).verdicts
    verdicts.write_bytes(b"".join(msgspec.json.encode(verdict) + b"\n" for verdict in judged))
    sets = read_sets(labelled, (name,)).sets
    flags = dupwatch(PROFILES[name], SECRET)(sets[0]).flags
    assert len(flags) > 5
    compared(name, scored(labelled, name, verdicts), {real.name: real.truth.count(flags) for real in sets})
