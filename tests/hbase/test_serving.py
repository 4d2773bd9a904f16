"""Two processes of ``dupwatch serve`` over one HBase: they are killed, and so are its gateway and HBase itself."""

import logging
import os
import random
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.server import Server
from tests.cli.serve.posting import Kill, Services, ask_again, check, post

pytestmark = pytest.mark.servers

GROUPS: Final = 20
LOAD_GROUPS: Final = 600
ROUNDS: Final = 5
"""Each kind of kill comes so often in the long form."""
NAMESPACE: Final = "serving"
LOAD_SEED: Final = os.environ.get("TEST_LOAD_SEED") or secrets.token_hex(4)
"""Another one for each long run, which prints it; given again it has the same order of kills, and the same moments."""
SOON: Final = ("--set", "service.answer_s=1")
"""Less than a server is down, so that requests end with an unknown outcome."""

_log = logging.getLogger(__name__)


def restart(*servers: Server) -> None:
    """Kill servers with -9, and start them again."""
    for server in servers:
        server.kill9()
    for server in servers:
        server.start()


def judged(services: Services, groups: int, kills: list[Kill], seed: str) -> None:
    """Post near copies from four clients, kill meanwhile, and check every promise of docs/contributing/protocol.md."""
    with services.running():
        posted = post(services, groups, kills, seed)
        ask_again(services, groups, posted.answered)
    check(services, groups, posted.answered)
    _log.info(
        "seed %s: %d articles, %d kills, requests by their ends: %s",
        seed, len(posted.answered), len(kills), dict(sorted(posted.ends.items())),
    )  # fmt: skip


def test_whoever_was_answered_is_in_the_sink_and_has_one_verdict(
    new_gateway: Callable[..., ThriftGateway], hbase_namespace: str, tmp_path: Path
) -> None:
    """One of the two is killed, then the gateway, then both at the same time."""
    gateway = new_gateway()
    services = Services(f"hbase://{gateway.address}/{hbase_namespace}", tmp_path)
    away = partial(restart, gateway)
    judged(
        services, GROUPS, [partial(services.replace, 0), away, partial(services.replace, 1, meanwhile=away)], "short"
    )


@pytest.mark.load
@pytest.mark.timeout(900)
def test_no_kill_of_services_gateway_or_hbase_breaks_a_promise(
    own_hbase: Callable[[str], tuple[Hbase, ThriftGateway]], tmp_path: Path
) -> None:
    """In a random order, alone and together, with requests that are given up while a server is away."""
    hbase, gateway = own_hbase(NAMESPACE)
    services = Services(f"hbase://{gateway.address}/{NAMESPACE}", tmp_path, *SOON)
    away = partial(restart, gateway)
    kinds: list[Kill] = [
        partial(services.replace, 0),
        partial(services.replace, 1),
        away,
        partial(services.replace, 0, 1),
        partial(services.replace, 0, meanwhile=away),
        partial(restart, hbase),
    ]
    kills = kinds * ROUNDS
    random.Random(LOAD_SEED).shuffle(kills)
    judged(services, LOAD_GROUPS, kills, LOAD_SEED)
