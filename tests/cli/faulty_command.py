"""A script that runs the command with an injected fault, named by ``FAULT`` in its environment.

``slow-store``: every call of the store takes a while, and answers; it is noted in the file ``store-calls`` where the
command runs. ``hangs-in-decoding``, ``hangs-in-fingerprinting``:
a text with the word HANGS is worked on for ever. Worker processes import this again, and so have the fault as well.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from consumer.cli import main
from consumer.fingerprint import Engine, Fingerprinter, Fingerprints, KnownShingles
from consumer.fingerprint.compiled import CompiledFingerprinter
from consumer.wiring import components
from storage.lmdb import LmdbStore
from storage.watched import WatchedStore

CALL_S: Final = 0.05
HANGS: Final = "HANGS"
_ROOT: Final = Path(__file__).parents[2]


def start_faulty(fault: str, *arguments: str | Path, **options: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401
    """Start the command with this fault, in its own process group."""
    from tests.cli.command import environment  # noqa: PLC0415  # for the tests, not for the command

    command = [sys.executable, __file__, *map(str, arguments)]
    own = environment(FAULT=fault, PYTHONPATH=str(_ROOT))
    return subprocess.Popen(command, env=own, start_new_session=True, **options)


def hang_here() -> None:
    """Wait forever, under a name that shows in a stack."""
    threading.Event().wait()


def _slow_store() -> None:
    opened = LmdbStore.open

    def wait() -> None:
        with Path("store-calls").open("ab") as file:
            file.write(b"\n")
        time.sleep(CALL_S)

    def open_slow(*arguments: Any) -> WatchedStore:  # noqa: ANN401  # as there
        return WatchedStore.interruptible(opened(*arguments), wait)

    LmdbStore.open = open_slow  # type: ignore[assignment,method-assign]


def _hangs_in_decoding() -> None:
    decode = vars(components)["decode_message"]

    def hang(record: Any, **more: Any) -> Any:  # noqa: ANN401  # as there
        if HANGS.encode() in record.data:
            hang_here()
        return decode(record, **more)

    vars(components)["decode_message"] = hang


def _hangs_in_fingerprinting() -> None:
    for engine in (Fingerprinter, CompiledFingerprinter):
        fingerprint: Callable[..., Fingerprints] = vars(engine)["fingerprint"]

        def hang(
            self: Engine,
            texts: Sequence[str],
            languages: Sequence[str] | None = None,
            known: KnownShingles | None = None,
            *,
            compute: Callable[..., Fingerprints] = fingerprint,
        ) -> Fingerprints:
            if any(HANGS in text for text in texts):
                hang_here()
            return compute(self, texts, languages, known)

        engine.fingerprint = hang  # type: ignore[method-assign]


if "FAULT" in os.environ:
    {
        "slow-store": _slow_store,
        "hangs-in-decoding": _hangs_in_decoding,
        "hangs-in-fingerprinting": _hangs_in_fingerprinting,
    }[os.environ["FAULT"]]()

if __name__ == "__main__":
    main()
