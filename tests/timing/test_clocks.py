"""Clocks: the machine's own, triggers from files and from a CAN bus, and what is said when one cannot be had."""

import os
import sys
import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.execution.engine import Snapshot
from cosim.execution.timing.clock_sources import open_clock
from cosim.simulation.loop import clocks
from cosim.simulation.loop.clocks import NO_TRIGGER, NativeClock, TriggerClock
from cosim.simulation.loop.pacing import Pacing, Trigger
from cosim.simulation.loop.tick_ring import LoopStatus, SharedWord
from tests.timing.paced_engines import LONG, MS, both_engines, engine_on

SHORT = 20 * MS


# --- the machine's own ---


def test_the_clock_is_that_of_the_machine():
    clock = NativeClock()
    for _ in range(100):
        before = time.monotonic_ns()
        now = clock.now()
        assert before <= now <= time.monotonic_ns()


def test_processor_time_is_that_of_the_thread():
    clock = NativeClock()
    before = time.thread_time_ns()
    now = clock.cpu()
    assert before <= now <= time.thread_time_ns()
    other = []
    thread = threading.Thread(target=lambda: other.extend([time.thread_time_ns(), clock.cpu(), time.thread_time_ns()]))
    thread.start()
    thread.join()
    assert other == sorted(other)


@pytest.mark.parametrize("spin", [0, 200_000, 50 * MS], ids=["sleeps", "spins at the end", "spins only"])
def test_no_wait_ends_before_its_time(spin):
    clock = NativeClock(spin)
    for k in range(5):
        due = clock.now() + k * 500_000
        woke = clock.wait(due)
        assert due <= woke <= time.monotonic_ns()
        due = clock.now() + 300_000
        assert clock.wait_until(due, spin) >= due


@pytest.mark.parametrize("spin", [0, 100_000])
@pytest.mark.parametrize("due", [lambda now: now - 5_000_000_000, lambda now: 0, lambda now: -1, lambda now: 100_000])
def test_a_time_that_is_past_is_not_waited_for(spin, due):
    clock = NativeClock(spin)
    before = clock.now()
    assert before <= clock.wait(due(before)) <= clock.now()


def test_latencies_are_how_late_waits_end():
    clock = NativeClock()
    first = clock.now() + MS
    found = clock.latencies(first, 100_000, 20)
    assert (found.shape, found.dtype) == ((20,), np.int64)
    assert np.all(found >= 0)
    assert first + 19 * 100_000 + found[-1] <= clock.now()
    assert clock.latencies(first, MS, 0).shape == (0,)


def test_latencies_of_times_that_are_past_grow_less_by_a_period_each():
    clock = NativeClock()
    before = clock.now()
    found = clock.latencies(before - 1_000_000_000, 10 * MS, 10)
    woke = before - 1_000_000_000 + np.arange(10) * 10 * MS + found
    assert np.all(np.diff(woke) >= 0) and before <= woke[0] and woke[-1] <= clock.now()


def test_systems_without_absolute_sleep_are_reported(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(clocks, "_library", clocks._library.__wrapped__)
    with pytest.raises(RunError, match=r"^real-time runs need Linux; run without real time here$"):
        NativeClock()


def test_without_a_trigger_the_machines_clock_is_taken():
    with ExitStack() as stack:
        clock = open_clock(Pacing(spin=0.0002), stack)
        assert type(clock) is NativeClock and clock._context[0] == 200_000
        due = clock.now() + MS
        assert clock.wait(due) >= due


# --- triggers from a file ---


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "triggers"
    os.mkfifo(path)
    return str(path)


@pytest.fixture
def triggers(fifo):
    """(clock, how to send triggers, how to stop sending for good)."""
    clock = TriggerClock(fifo, LONG)
    writer = [os.open(fifo, os.O_WRONLY)]
    yield clock, lambda count=1: os.write(writer[0], bytes(count)), lambda: os.close(writer.pop())
    for file in writer:
        os.close(file)
    clock.close()


def test_every_byte_is_a_trigger_whenever_the_tick_was_due(triggers):
    clock, send, hang_up = triggers
    for count in (1, 3, 2):
        send(count)
        for due in [0, LONG, 1][:count]:
            before = time.monotonic_ns()
            assert before <= clock.wait(due + before) <= time.monotonic_ns()
    hang_up()
    assert clock.wait(0) == NO_TRIGGER


def test_triggers_that_came_before_the_ticks_begin_are_old(triggers):
    clock, send, hang_up = triggers
    send(5000)
    clock.begin()
    send()
    assert clock.wait(0) > 0
    hang_up()
    clock.begin()
    assert clock.wait(0) == NO_TRIGGER


def test_a_trigger_is_waited_for(triggers):
    clock, send, _ = triggers
    sent = []

    def later():
        time.sleep(0.02)
        sent.append(time.monotonic_ns())
        send()

    thread = threading.Thread(target=later)
    thread.start()
    woke = clock.wait(0)
    thread.join()
    assert sent[0] <= woke <= time.monotonic_ns()


@pytest.mark.parametrize("connected", [False, True])
def test_without_triggers_a_wait_ends_after_the_timeout(fifo, connected):
    clock = TriggerClock(fifo, SHORT)
    with ExitStack() as stack:
        stack.callback(clock.close)
        if connected:
            stack.callback(os.close, os.open(fifo, os.O_WRONLY))
        before = time.monotonic_ns()
        assert clock.wait(0) == NO_TRIGGER
        assert time.monotonic_ns() - before >= SHORT - MS  # poll counts whole ms


def test_a_sender_that_reconnects_triggers_again(triggers, fifo):
    clock, _, hang_up = triggers
    hang_up()
    assert clock.wait(0) == NO_TRIGGER
    writer = os.open(fifo, os.O_WRONLY)
    os.write(writer, b"x")
    assert clock.wait(0) > 0
    os.close(writer)


@pytest.mark.parametrize(("name", "triggers"), [("timer", 3), ("uio0", 5)])  # of 8 bytes, of 4
def test_the_kind_of_file_determines_the_size_of_a_trigger(tmp_path, name, triggers):
    (tmp_path / name).write_bytes(bytes(17))
    clock = TriggerClock(str(tmp_path / name), LONG)
    assert [clock.wait(0) == NO_TRIGGER for _ in range(triggers + 1)] == [False] * triggers + [True]
    clock.close()


def test_a_terminal_counts_bytes():
    leader, follower = os.openpty()
    clock = TriggerClock(os.ttyname(follower), LONG)
    os.write(leader, b"\n\n")  # a terminal hands on whole lines
    assert clock.wait(0) > 0 and clock.wait(0) > 0
    clock.close()
    os.close(follower)
    os.close(leader)


@pytest.mark.parametrize(
    ("name", "why"), [("none", "No such file or directory"), ("file/below", "Not a directory"), ("", "Is a directory")]
)
def test_a_source_that_cannot_be_opened(tmp_path, name, why):
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(RunError) as caught, ExitStack() as stack:
        open_clock(Pacing(trigger=Trigger(file=str(path))), stack)
    assert str(caught.value) == f"cannot read triggers from '{path}': {why}"


def test_what_was_opened_is_closed_with_the_run(fifo):
    with ExitStack() as stack:
        clock = open_clock(Pacing(trigger=Trigger(file=fifo, timeout=60.0)), stack)
        assert isinstance(clock, TriggerClock)
        writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        os.write(writer, b"x")
        assert clock.wait(0) > 0
    with pytest.raises(BrokenPipeError):
        os.write(writer, b"x")
    os.close(writer)


@both_engines
def test_ticks_follow_the_triggers(loops, triggers, engine_kind):
    """Each trigger is sent when the tick before has been taken, and stamped when it came."""
    clock, send, hang_up = triggers
    engine, rings, take = engine_on(loops, clock, engine_kind, 200)
    sent = []

    def sender():
        for k in range(120):
            while rings.words[SharedWord.TAKEN] < k:
                time.sleep(2e-5)
            sent.append(time.monotonic_ns())
            send()
        hang_up()

    thread = threading.Thread(target=sender)
    thread.start()
    take()
    thread.join()
    assert rings.status is LoopStatus.NO_TRIGGER
    rows, stamps = rings.read(200)
    assert len(rows) == engine.number == 120
    np.testing.assert_array_equal(stamps[:, 0], stamps[:, 1])
    assert np.all(np.diff(stamps[:, :-1], axis=1) >= 0)
    assert np.all(stamps[:, 0] >= sent) and np.all(stamps[1:, 0] >= stamps[:-1, -2])
    engine.restore(Snapshot(0, engine.tick_model.memory()))
    engine.arm()
    np.testing.assert_array_equal(rows, engine.run(120)[0])


@both_engines
def test_triggers_that_have_gathered_give_a_tick_each(loops, triggers, engine_kind):
    clock, send, _ = triggers
    _, rings, take = engine_on(loops, clock, engine_kind, 50)
    send(50)
    take()
    assert (rings.status, rings.waiting) == (LoopStatus.FINISHED, 50)


@both_engines
def test_a_run_ends_when_no_trigger_comes(loops, fifo, engine_kind):
    clock = TriggerClock(fifo, SHORT)
    writer = os.open(fifo, os.O_WRONLY)
    engine, rings, take = engine_on(loops, clock, engine_kind, 50)
    os.write(writer, bytes(3))
    take()
    assert (rings.status, rings.waiting, engine.number) == (LoopStatus.NO_TRIGGER, 3, 3)
    os.close(writer)
    clock.close()
