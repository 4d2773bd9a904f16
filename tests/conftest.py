"""What all tests can ask for, and what they have in common."""

import gc
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, filterfalse, groupby, islice
from operator import attrgetter
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings

from consumer.text.redaction import forget_all
from deploy.local import ports
from storage import clock
from tests.examples import DEFAULT, share_of
from tests.machine_clock import MachineClock

_ALLOCATED_BEFORE_COLLECTION: Final = 20_000
"""Objects. Python's default is 700."""

pytest_plugins = ["tests.hbase_server", "tests.postgres_server"]

# How long an example takes depends on what else the machine does.
settings.register_profile(
    "any-speed", max_examples=share_of(DEFAULT), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# For who wants to know whether something fails, and not what fails most simply: tests.mutation.
settings.register_profile(
    "no-shrinking",
    settings.get_profile("any-speed"),
    phases=[Phase.explicit, Phase.generate],
    database=None,
    derandomize=True,
)
settings.load_profile("no-shrinking" if "TEST_NO_SHRINKING" in os.environ else "any-speed")


@pytest.fixture(autouse=True)
def _no_secrets_of_others() -> Iterator[None]:
    """What one test has read as a secret is an ordinary word in the next."""
    yield
    forget_all()


@pytest.fixture(autouse=True)
def _log_levels_of_others() -> Iterator[None]:
    """A command that a test runs in this process sets up the log; the next test finds the levels as they were."""
    loggers = logging.getLogger(), logging.getLogger("dupwatch")
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> MachineClock:
    """The clocks of this machine, which the test sets; the time of this process begins with them."""
    clocks = MachineClock(partial(monkeypatch.setattr, clock, "PROCESS_CLOCK"))
    clocks.start_process()
    return clocks


def pytest_configure() -> None:
    """Give each worker ports of its own: what two of them start at the same time never meets on one port."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        ports.PORTS = ports.PORTS[int(worker.removeprefix("gw")) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Do without garbage collection while tests are collected, and leave them out of it from then on.

    A worker keeps thousands of them, and each full collection would go through them all for nothing. From then on
    garbage is collected less often than Python does by default, which took an eighth of the tests' processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_ALLOCATED_BEFORE_COLLECTION)
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let half of the workers begin with the modules that wait for servers, beside others that compute.

    xdist gives every worker an equal part of the list. In the order of files, all of them would wait at the same time,
    at the end of the run. Called last, after tests were deselected: with them the parts would be longer than those of
    xdist, and the first modules of one worker would be the last ones of the worker before it.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0"))
    if workers > 1:
        items[:] = _waiting_beside_computing(items, workers)


def _waiting_beside_computing(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests in another order; those of a module stay together."""
    modules = [list(module) for _, module in groupby(items, attrgetter("path"))]
    waiting = list(filter(_waits, modules))
    # These share tables that take half a minute to make. Begun last, they would be taken over by other workers, each of
    # which would make them again.
    waiting.sort(key=lambda module: module[0].path.parent.name != "servers")
    computing = chain.from_iterable(filterfalse(_waits, modules))
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for place, module in enumerate(waiting):
        parts[place % -(-workers // 2)] += module
    for part in parts:
        part.extend(islice(computing, max(0, len(items) // workers - len(part))))
    return [*chain.from_iterable(parts), *computing]


def _waits(module: Iterable[pytest.Item]) -> bool:
    """Return whether any test of a module waits for servers."""
    return any(item.get_closest_marker("servers") for item in module)


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Processes that a failed test has begun end with it, so that they fail no other test."""
    del item
    # Imported by the tests that start commands; no other test has to pay for it.
    prefork = sys.modules.get("tests.prefork")
    if prefork is not None and call.when == "call" and call.excinfo is not None:
        prefork.kill_those_begun(call.start)
