"""``text-dedup`` as its command line runs it, in the Python that has it: its packages contradict those of dupwatch.

It reads a whole set and returns clusters. A text is flagged as a copy of the first one of its cluster. Times are
without its start, which takes seconds.
"""

import resource
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.quality.feed import write_lines
from benchmarks.quality.real.detectors import Judged, Peer
from benchmarks.quality.real.truth import Flag, RealSet

NAME: Final = "text-dedup"
THRESHOLD: Final = 0.7
_OTHERS: Final = (0.3, 0.4, 0.5, 0.6, 0.8, 0.9)
_VERSION: Final = "0.4.0"
_MODULE: Final = "text_dedup.minhash"
_PRINT_VERSION: Final = "from importlib.metadata import version; print(version('text-dedup'))"
_PRINT_CLUSTERS: Final = (
    "import json, pickle, sys; found = pickle.load(open(sys.argv[1], 'rb'));"
    "print(json.dumps([[text, found.find(text)] for text in list(found.parent)]))"
)


def text_dedup(python: Path) -> Peer:
    """Return the MinHash of ``text-dedup`` in this Python, with its defaults: 5 words, 250 permutations.

    Raises ``ValueError`` if that Python does not have the version whose options are known.
    """
    asked = subprocess.run([str(python), "-c", _PRINT_VERSION], capture_output=True, text=True, check=False)
    found = asked.stdout.strip()
    if found != _VERSION:
        raise ValueError(f"{python} has {NAME} {found or 'not installed'}; this benchmark runs {NAME} {_VERSION}")

    start = _seconds_of([str(python), "-m", _MODULE, "--help"], Path())

    def judge(real: RealSet, threshold: float) -> Judged:
        with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder:
            return _judged(python, real, threshold, Path(folder), start)

    return Peer(NAME, "threshold", THRESHOLD, _OTHERS, judge)


def _judged(python: Path, real: RealSet, threshold: float, folder: Path, start: float) -> Judged:
    feed, out = folder / "feed.jsonl", folder / "out"
    write_lines(feed, [{"text": article.body} for article in real.articles])
    command = [
        str(python), "-m", _MODULE, "--path", "json", "--data_files", str(feed), "--split", "train",
        "--column", "text", "--cache_dir", str(folder / "cache"), "--output", str(out), "--num_proc", "1",
        "--threshold", str(threshold), "--debug",
    ]  # fmt: skip
    seconds = max(0.0, _seconds_of(command, folder) - start)
    first_of = _first_of_each(python, out / "uf.pkl")
    ids = [article.id for article in real.articles]
    copies = [(first, text) for text, first in sorted(first_of.items()) if first != text]
    if real.in_pairs:
        copies = [(text - 1, text) for text in range(1, len(ids), 2) if _together(first_of, text)]
    flags = [Flag(ids[first], ids[text]) for first, text in copies]
    return Judged(flags, seconds / max(1, len(ids)))


def _seconds_of(command: Sequence[str], folder: Path) -> float:
    """Run a command and return its processor time. Raises ``ValueError`` if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise ValueError(f"{NAME} ended with {ran.returncode}: {ran.stderr[-400:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _first_of_each(python: Path, path: Path) -> dict[int, int]:
    """Return the first text of each one's cluster. Only the Python with the package can load what it writes."""
    printed = subprocess.run([str(python), "-c", _PRINT_CLUSTERS, str(path)], capture_output=True, check=True)
    clusters: dict[int, list[int]] = defaultdict(list)
    for text, root in msgspec.json.decode(printed.stdout, type=list[tuple[int, int]]):
        clusters[root].append(text)
    return {text: min(members) for members in clusters.values() for text in members}


def _together(first_of: dict[int, int], text: int) -> bool:
    """Say whether a text is in the cluster of the one before it; texts that are too short are in none."""
    return text in first_of and first_of[text] == first_of.get(text - 1)
