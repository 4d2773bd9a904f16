"""One mutant after the other in a copy of the checkout: whether a test fails that passes without it."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.hbase_server import OWNER_VARIABLE, SHARED_VARIABLE, end_servers
from tests.mutation.drawing import Mutant, mutated
from tests.mutation.targets import tiers

Ending = Literal["killed", "timed out", "survived", "unclear"]
_TEST_S: Final = 120
_TIER_S: Final = 900.0
"""A mutant that makes a test, or all of them, take this long has been seen."""
_PYTEST: Final = shlex.split(
    f"-m pytest -x -q -n 0 -p no:cacheprovider --durations=0 --durations-min=999 --timeout={_TEST_S}"
)
_NOTHING_COLLECTED: Final = 5
_OUTPUT_CHARS: Final = 2_000


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a mutant ended; ``by`` is the test that saw it."""

    seed: int
    mutant: Mutant
    ending: Ending
    by: str
    seconds: float
    output: str = ""


class Trials:
    """A copy of the checkout, with servers of its own that all its trials share."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._tree = folder / "tree"
        self._servers = folder / "servers"
        self._process: subprocess.Popen[str] | None = None
        self._is_stopped = False
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            check=True,
            capture_output=True,
        )
        for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
            if (root / name).is_file():
                (self._tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / name, self._tree / name)

    def try_out(self, mutant: Mutant, seed: int) -> Result:
        """Run the tests that could see it, until one fails."""
        began_s = time.monotonic()
        for tier in tiers(self._tree, mutant.module):
            failed, output = self._with(mutant, tier)
            if self._is_stopped:
                break
            if failed is None:
                continue
            ending: Ending = "killed" if failed else "timed out"
            if failed and not self._passes(failed):
                # It fails without the mutant too: by chance, or since the mutant harmed the servers.
                self._end_servers()
                ending = "killed" if self._passes(failed) else "unclear"
            return self._result(mutant, seed, ending, " ".join(failed or tier), began_s, output)
        return self._result(mutant, seed, "survived", "", began_s, "")

    def stop(self) -> None:
        """End the trial that runs; its caller gets no result."""
        self._is_stopped = True
        self._kill()

    @property
    def is_stopped(self) -> bool:
        """Whether a stop was requested."""
        return self._is_stopped

    def close(self) -> None:
        """End the servers, and forget the copy."""
        self._end_servers()
        shutil.rmtree(self._tree, ignore_errors=True)

    def _result(self, mutant: Mutant, seed: int, ending: Ending, by: str, began_s: float, output: str) -> Result:
        seconds = round(time.monotonic() - began_s, 1)
        kept = output[-_OUTPUT_CHARS:] if ending == "unclear" else ""
        return Result(seed=seed, mutant=mutant, ending=ending, by=by, seconds=seconds, output=kept)

    def _with(self, mutant: Mutant, tier: tuple[str, ...]) -> tuple[tuple[str, ...] | None, str]:
        path = self._tree / mutant.module
        source = path.read_text(encoding="utf-8")
        code = mutated(source, mutant.operator, mutant.occurrence)
        if code is None:
            raise SystemExit(f"{mutant.name} cannot be made: the module has changed meanwhile")
        try:
            self._write(path, code)
            return self._pytest(tier)
        finally:
            self._write(path, source)

    def _passes(self, arguments: tuple[str, ...]) -> bool:
        return self._pytest(arguments)[0] is None

    @staticmethod
    def _write(path: Path, code: str) -> None:
        path.write_text(code, encoding="utf-8")
        # What was compiled is known by time and size, and both can be the same.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def _pytest(self, arguments: tuple[str, ...]) -> tuple[tuple[str, ...] | None, str]:
        """What to run to see it fail again, nothing where it took too long, None where all passed; and the output."""
        self._process = process = subprocess.Popen(
            [sys.executable, *_PYTEST, *arguments],
            cwd=self._tree,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=_TIER_S)
        except subprocess.TimeoutExpired:
            self._kill()
            process.communicate()
            return (), ""
        if process.returncode in {0, _NOTHING_COLLECTED}:
            return None, output
        failed = re.findall(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", output, re.MULTILINE)
        # A module that cannot be imported fails as a file.
        return (tuple(failed[:1]) or arguments), output

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _environment(self) -> Mapping[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DUPWATCH_", "PYTEST_"))}
        self._servers.mkdir(parents=True, exist_ok=True)
        return inherited | {
            "PYTHONPATH": str(self._tree),
            "TEST_NO_SHRINKING": "1",
            # The names of tests are not to be cut off.
            "COLUMNS": "1000",
            SHARED_VARIABLE: str(self._servers),
            OWNER_VARIABLE: str(os.getpid()),
        }

    def _end_servers(self) -> None:
        end_servers(self._servers)
