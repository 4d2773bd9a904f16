"""The time of a process: it advances with the boot-time clock, and takes no step of the wall clock."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.clock import STEP_S_MIN, SteadyClock, boot_time_ns, now_ms
from tests.builders import TIME_MS
from tests.machine_clock import DAY_S, HOUR_S, JUMPS_S, MachineClock


@pytest.fixture
def clock(machine: MachineClock) -> SteadyClock:
    """The time of a process on this machine."""
    return SteadyClock(machine.wall, machine.boot)


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_step_of_the_wall_clock_is_not_followed(
    machine: MachineClock, clock: SteadyClock, jump_s: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, with what to do, and counted; time passes as before."""
    machine.set_wall(jump_s)
    assert [clock.now_ms() for _ in range(3)] == [TIME_MS] * 3
    machine.go_on(HOUR_S)
    assert clock.now_ms() == TIME_MS + 1000 * HOUR_S
    assert (clock.steps(), clock.ahead_s()) == (1, jump_s)
    (line,) = [record.message for record in caplog.records]
    assert ("set ahead by" in line, "set back by" in line) == (jump_s > 0, jump_s < 0)
    assert ("ahead of the time of this process" in line) == (jump_s > 0)
    assert line.endswith("correct it. If it is right, restart all processes that use this store.")


def test_a_clock_that_is_corrected_agrees_again(
    machine: MachineClock, clock: SteadyClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Both steps are counted, and the last line in the log is the good news."""
    for jump_s in (20 * DAY_S, -20 * DAY_S):
        machine.set_wall(jump_s)
        assert clock.now_ms() == TIME_MS
    assert (clock.steps(), clock.ahead_s()) == (2, 0)
    assert caplog.records[-1].message == (
        "The clock of this machine was set back by 20 days, 0:00:00, and agrees with the time of this process again."
    )


def test_a_machine_that_was_suspended_is_right(machine: MachineClock, clock: SteadyClock) -> None:
    """Both clocks count the time in which it slept; so they do where NTP slews them."""
    machine.go_on(3 * DAY_S)
    assert (clock.now_ms(), clock.steps(), clock.ahead_s()) == (TIME_MS + 3000 * DAY_S, 0, 0)


def test_small_steps_count_once_they_have_added_up(machine: MachineClock, clock: SteadyClock) -> None:
    """A leap second is none; a clock that is set by a second again and again is away in the end."""
    for _ in range(STEP_S_MIN - 1):
        machine.set_wall(1)
        assert (clock.now_ms(), clock.steps(), clock.ahead_s()) == (TIME_MS, 0, 0)
    machine.set_wall(1)
    assert (clock.now_ms(), clock.steps(), clock.ahead_s()) == (TIME_MS, 1, STEP_S_MIN)


def test_a_pause_between_two_readings_is_no_step(machine: MachineClock, caplog: pytest.LogCaptureFixture) -> None:
    """As where the process is stopped between them, and continues after a minute."""
    pauses_s = [0, 0]

    def boot() -> int:
        read_ns = machine.boot_ns
        machine.go_on(pauses_s.pop() if pauses_s else 0)
        return read_ns

    clock = SteadyClock(machine.wall, boot)
    pauses_s.append(60)
    assert clock.now_ms() == TIME_MS
    assert (clock.steps(), clock.ahead_s(), caplog.records) == (0, 0, [])


def test_threads_count_a_step_once(machine: MachineClock, caplog: pytest.LogCaptureFixture) -> None:
    """Although all of them see it."""
    caplog.set_level(logging.WARNING)

    def wall() -> int:
        # Let others read, too.
        time.sleep(0.001)
        return machine.wall_ns

    clock = SteadyClock(wall, machine.boot)
    machine.set_wall(DAY_S)
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: clock.now_ms(), range(32))) == {TIME_MS}
    assert (clock.steps(), len(caplog.records)) == (1, 1)


def test_the_process_goes_by_the_boot_time_clock() -> None:
    """The real ones: they run at the same speed, and the wall clock is where it was at the start."""
    # Between two readings of one clock, and a millisecond for rounding: however long it takes to read another.
    before_ns, began_ms, began_ns = boot_time_ns(), now_ms(), boot_time_ns()
    assert abs(began_ms - time.time_ns() // 1_000_000) < 1000 * STEP_S_MIN
    time.sleep(0.05)
    later_ns, later_ms, last_ns = boot_time_ns(), now_ms(), boot_time_ns()
    passed_ns = (later_ms - began_ms) * 1_000_000
    assert later_ns - began_ns - 1_000_000 <= passed_ns <= last_ns - before_ns + 1_000_000
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert boot_time_ns() <= time.clock_gettime_ns(time.CLOCK_BOOTTIME) <= boot_time_ns()
