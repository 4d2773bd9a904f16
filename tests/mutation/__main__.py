"""Draw mutants by a seed and test them: ``make mutants SEED=1``; see docs/contributing/mutation_tests.md."""

import argparse
import signal
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from tests.mutation.drawing import Mutant, draw
from tests.mutation.targets import GROUPS
from tests.mutation.trial import Result, Trials

ROOT: Final = Path(__file__).parents[2]
_INTERRUPTED: Final = 130
_SEEN: Final = frozenset({"killed", "timed out"})


def main() -> int:
    """Try what was drawn and has no result yet; ends with 1 where something survived."""
    asked = _arguments()
    groups = asked.groups.split(",") if asked.groups else list(GROUPS)
    drawn = draw(ROOT, asked.seed, groups, asked.count)
    if asked.list:
        for mutant in drawn:
            _tell(f"{mutant.group:8} {mutant.name}\n    - {mutant.before}\n    + {mutant.after}")
        return 0
    results = _Results(ROOT / "out" / "mutants" / f"{asked.seed}.jsonl", anew=asked.anew)
    waiting = [mutant for mutant in drawn if mutant not in results.known]
    # Whoever asks to end gets no process left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with TemporaryDirectory(prefix="dupwatch-mutants-") as folder, ThreadPoolExecutor(asked.jobs) as pool:
        trials = [Trials(ROOT, Path(folder) / str(at)) for at in range(asked.jobs)]
        shares = [waiting[at :: asked.jobs] for at in range(asked.jobs)]
        try:
            for running in [
                pool.submit(_try_all, *trial, asked.seed, results) for trial in zip(trials, shares, strict=True)
            ]:
                running.result()
        except KeyboardInterrupt:
            return _INTERRUPTED
        finally:
            for trial in trials:
                trial.stop()
    return _report([results.known[mutant] for mutant in drawn])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=120, help="how many mutants, of all groups together")
    parser.add_argument("--groups", default="", help=f"comma-separated: {', '.join(GROUPS)}; all by default")
    parser.add_argument(
        "--jobs", type=int, default=2, help="how many at a time, each with a copy and servers of its own"
    )
    parser.add_argument("--anew", action="store_true", help="forget earlier results of this seed")
    parser.add_argument("--list", action="store_true", help="show what is drawn, and try nothing")
    return parser.parse_args()


class _Results:
    """A line for each mutant that was tried, so that a stopped run can resume."""

    def __init__(self, path: Path, *, anew: bool) -> None:
        self._path = path
        self._turn = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if anew:
            path.unlink(missing_ok=True)
        lines = path.read_bytes().splitlines() if path.exists() else []
        found = [msgspec.json.decode(line, type=Result) for line in lines]
        self.known = {result.mutant: result for result in found if result.ending in _SEEN}

    def add(self, result: Result) -> None:
        """Keep it and tell of it."""
        with self._turn:
            self.known[result.mutant] = result
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(result) + b"\n")
            _tell(f"{result.ending:9} {result.seconds:6.1f} s  {result.mutant.name}  {result.by}")


def _try_all(trials: Trials, mutants: list[Mutant], seed: int, results: _Results) -> None:
    try:
        # Of one group after the other, so that servers are started late.
        for mutant in sorted(mutants, key=lambda mutant: list(GROUPS).index(mutant.group)):
            result = trials.try_out(mutant, seed)
            if trials.is_stopped:
                return
            results.add(result)
    finally:
        trials.close()


def _report(results: list[Result]) -> int:
    for group in dict.fromkeys(result.mutant.group for result in results):
        counted = Counter(result.ending for result in results if result.mutant.group == group)
        _tell(f"{group}: " + ", ".join(f"{count} {ending}" for ending, count in sorted(counted.items())))
    left = [result for result in results if result.ending not in _SEEN]
    for result in left:
        mutant = result.mutant
        _tell(f"{result.ending}: {mutant.name} in {mutant.definition}\n    - {mutant.before}\n    + {mutant.after}")
    return int(bool(left))


def _tell(sentence: str) -> None:
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
