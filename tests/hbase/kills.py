"""Servers that are killed with -9 while processes judge, each at a moment that a seed picks."""

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.sharedctypes import Synchronized
from typing import NamedTuple, TypeVar

from deploy.local.server import Server

POLL_S = 0.002
DELAY_MAX_S = 0.2
"""Longer than a batch takes, so that a kill comes anywhere in one."""
RUN_SHARE_BEFORE = 0.1
RUN_SHARE_OF_KILLS = 0.8

_Answer = TypeVar("_Answer")


class Kill(NamedTuple):
    """One kill: of what, how many batches had been answered by then, how many were while it was down, and how long."""

    name: str
    answered_before: int
    answered_meanwhile: int
    down_s: float


def with_kills(
    work: Callable[[], _Answer], servers: Sequence[Server], answered: "Synchronized[int]", batches: int, seed: str
) -> tuple[_Answer, list[Kill]]:
    """Process this many batches, and kill and restart these servers meanwhile, in this order."""
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(work)
        kills: list[Kill] = []
        chance = random.Random(seed)
        for number, server in enumerate(servers):
            share = RUN_SHARE_BEFORE + RUN_SHARE_OF_KILLS * (number + chance.uniform(0, 0.5)) / len(servers)
            while answered.value < share * batches and not working.done():
                time.sleep(POLL_S)
            time.sleep(chance.uniform(0, DELAY_MAX_S))
            kills.append(_kill(server, answered))
        return working.result(), kills


def _kill(server: Server, answered: "Synchronized[int]") -> Kill:
    server.kill9()
    began_s, before = time.monotonic(), answered.value
    server.launch()
    # It cannot be used yet; what is answered from its first good moment on does not count.
    meanwhile = answered.value - before
    server.wait()
    return Kill(server.name, before, meanwhile, time.monotonic() - began_s)
