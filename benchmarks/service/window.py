"""A window full of made articles, judged by ``dupwatch run`` into an LMDB store, and texts to ask of it.

The store stays where it is for the next measurement. Articles are those of ``consumer.stress.made_texts``.
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.service.serving import dupwatch
from benchmarks.speed.report import tell
from consumer.stress.made_texts import FeedText, make_feed

CHARS: Final = 2_000
COPIED_EVERY: Final = 10
_CHUNK: Final = 10_000
_TOLD_EVERY: Final = 10
_WINDOW_SEED: Final = 1_000
_ENCODER: Final = msgspec.json.Encoder()
_REPRINT: Final = "本报讯（记者 通讯员）。\n"


def filled_window(folder: Path, articles: int, chars: int = CHARS) -> str:
    """The URL of a store with this many articles in its window, filled first where it is not there yet."""
    store = folder / f"window-{articles}-{chars}"
    done = folder / f"{store.name}.done"
    url = f"lmdb:{store}"
    if done.exists():
        return url
    folder.mkdir(parents=True, exist_ok=True)
    tell(f"judging {articles:,} articles into {store} …")
    command = [
        dupwatch(),
        "run",
        "--source",
        "-",
        "--sink",
        str(folder / f"{store.name}.verdicts.jsonl"),
        "--store",
        url,
    ]
    began_s = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE) as run:
        if run.stdin is None:
            raise RuntimeError("the run has no input")
        with run.stdin as lines:
            for number, chunk in enumerate(_chunks(articles, chars), 1):
                lines.writelines(_ENCODER.encode({"id": text.id, "body": text.body}) + b"\n" for text in chunk)
                if number % _TOLD_EVERY == 0:
                    tell(f"{min(number * _CHUNK, articles):,} after {time.monotonic() - began_s:.0f} s")
    if run.returncode:
        raise RuntimeError(f"dupwatch run ended with {run.returncode}")
    done.touch()
    return url


def _chunks(articles: int, chars: int) -> Iterator[list[FeedText]]:
    for number, start in enumerate(range(0, articles, _CHUNK)):
        yield make_feed(min(_CHUNK, articles - start), chars, copies_share=0.1, seed=_WINDOW_SEED + number)


def questions(count: int, chars: int, seed: int, articles: int) -> list[str]:
    """Texts to ask of a window with this many articles: one in ten reprints one of them, the others are new.

    No two are equal, nor are those of another seed.
    """
    new = iter(make_feed(count, chars, copies_share=0.0, seed=seed))
    stored = next(_chunks(articles, chars))
    return [
        f"{seed}-{place}{_REPRINT}{stored[(seed + place) % len(stored)].body}"
        if place % COPIED_EVERY == 0
        else next(new).body
        for place in range(count)
    ]
