"""The scheduler: its states, what becomes of a fault anywhere in a tick, pauses, snapshots, arming again."""

import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputError, RunError
from cosim.execution.scheduler import SchedulerState
from cosim.execution.timing import privileges
from cosim.simulation.loop.tick_ring import SharedWord
from tests.execution.scheduler_helpers import MS, Ticks, failing
from tests.kit.rigs import rig_in

# --- states -----------------------------------------------------------------------------------------


WORDS = {
    "prepare": "configured",
    "arm": "ready or stopped",
    "start": "armed",
    "pause": "running",
    "step": "paused",
    "resume": "paused",
    "snapshot": "armed or fault or paused or ready or stopped",
    "restore": "fault or paused or ready or stopped",
    "reset": "fault",
}


WAYS = {
    "configured": [],
    "ready": ["prepare"],
    "armed": ["prepare", "arm"],
    "running": ["prepare", "arm", "start"],
    "paused": ["prepare", "arm", "start", "pause"],
    "stopped": ["prepare", "arm", "start", "stop"],
    "fault": ["prepare", "break", "arm", "start", "read"],
}


def go(bench, state):
    """Take the scheduler to a state."""
    for what in WAYS[state]:
        if what == "break":
            bench.drivers[0].read = failing(OSError("unplugged"))
        else:
            getattr(bench.scheduler, what)(*((1000,) if what == "start" else ()))
    assert bench.scheduler.state == state


@pytest.mark.parametrize("paced", [False, True])
@pytest.mark.parametrize("state", WAYS)
def test_from_any_state_wrong_orders_are_refused_and_closing_releases_everything(bench_of, monkeypatch, state, paced):
    calls = []

    @contextmanager
    def take(pacing):
        calls.append(("acquired", threading.get_ident()))
        yield (privileges.Privilege("priority", True, ""),)
        calls.append(("released", threading.get_ident()))

    monkeypatch.setattr(privileges, "acquire", take)
    bench = bench_of(paced=paced)
    before = set(threading.enumerate())
    bench.clock.block(1, lambda: bench.scheduler.mode.ring.words[SharedWord.STOP])
    go(bench, state)
    for what, states in WORDS.items():
        if state not in states.split(" or "):
            with pytest.raises(RunError) as caught:
                getattr(bench.scheduler, what)(*((None,) if what == "restore" else ()))
            assert str(caught.value) == f"cannot {what} a rig that is {state}; it must be {states}"
            assert bench.scheduler.state == state
    bench.scheduler.close()
    if state != "configured":
        assert bench.log[-4:] == ["stop a", "stop b+c", "close a", "close b+c"]
        last_write = max((k for k, what in enumerate(bench.log) if what.startswith("write")), default=-1)
        assert last_write < bench.log.index("stop a")
    assert set(threading.enumerate()) <= before
    done = list(bench.log)
    bench.scheduler.close()
    assert bench.log == done
    ran = paced and state not in ("configured", "ready")
    assert [what for what, _ in calls] == ["acquired", "released"] * ran
    assert len({thread for _, thread in calls} | {threading.get_ident()}) == 1 + ran
    ended = {"armed": "stopped", "running": "stopped", "paused": "stopped"}.get(state, state)
    assert bench.scheduler.state == ended
    with pytest.raises(RunError, match=r"^cannot arm a rig that was closed; make a new scheduler$"):
        bench.scheduler.arm()


@pytest.mark.parametrize("paced", [False, True])
def test_the_way_through_the_states(bench_of, paced):
    bench = bench_of(paced=paced)
    scheduler, seen = bench.scheduler, []
    assert scheduler.read() is None
    scheduler.prepare()
    assert (scheduler.state, bench.log) == (SchedulerState.READY, ["open a", "open b+c"])
    scheduler.arm()
    assert (scheduler.state, bench.log[2:]) == (SchedulerState.ARMED, ["enable a", "enable b+c"])
    scheduler.start(20)
    bench.drivers[1].stop = lambda: seen.append(str(scheduler.state))
    assert Ticks(scheduler).numbers == list(range(20))
    assert seen[-1] == "stopping" and scheduler.state is SchedulerState.STOPPED
    assert (scheduler.fault, scheduler.read()) == ("", None)
    scheduler.stop()
    assert scheduler.state is SchedulerState.STOPPED


def test_a_stopped_run_keeps_what_its_ticks_left(bench_of):
    scheduler = bench_of().start(1000)
    first = Ticks(scheduler, 1)
    scheduler.stop()
    rest = Ticks(scheduler)
    assert (first + rest).numbers == list(range(scheduler.engine.number))
    assert scheduler.engine.view("request").tolist() == [0.0] * 3


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("paced", [False, True])
def test_motors_that_cannot_be_measured_are_off_again(bench_of, paced, planned):
    """For the plan, with motors off, or once they are on: it is unplugged between."""
    bench = bench_of(paced=paced, hardware=True)
    bench.scheduler.prepare()
    first = bench.drivers[0]
    if planned:
        first.then["enable", 0] = lambda: setattr(first, "read", failing(OSError("unplugged")))
    else:
        first.read = failing(OSError("unplugged"))
    with pytest.raises(RunError, match=r"^the driver of a failed: OSError: unplugged \("):
        bench.scheduler.arm()
    enabled = ["enable a", "enable b+c"] if planned else []
    assert [what for what in bench.log if not what.startswith(("open", "read"))] == [*enabled, "stop a", "stop b+c"]
    assert bench.scheduler.state is SchedulerState.READY
    del first.read
    assert Ticks(bench.start(3)).numbers == [0, 1, 2]


@pytest.mark.parametrize("paced", [False, True])
def test_drivers_have_time_to_measure_before_the_first_tick(bench_of, paced):
    """Deadlines are times of the clock; in the rig they are durations of ticks."""
    bench, deadlines = bench_of(paced=paced, hardware=True), []
    bench.scheduler.prepare()
    now, read = bench.clock.time * paced, bench.drivers[0].read
    bench.drivers[0].read = lambda out, deadline_ns: (deadlines.append(deadline_ns), read(out, deadline_ns))
    Ticks(bench.start(3))
    planned, first, *ticks = deadlines  # the plan is measured with motors off
    assert (now + 4 * MS < planned <= first < ticks[0]) if paced else (planned == first == ticks[0] == 0)
    assert [later - ticks[0] for later in ticks] == [0, MS, 2 * MS]


def test_motors_stop_in_the_loop_at_the_end_of_a_real_time_run(bench_of):
    """Whoever reads the ticks may be late."""
    bench = bench_of(paced=True)
    scheduler = bench.start(20)
    scheduler.mode.future.result()
    assert scheduler.state is SchedulerState.RUNNING and bench.log[-2:] == ["stop a", "stop b+c"]


# --- privileges -----------------------------------------------------------------------------------------


@pytest.fixture
def missing(monkeypatch):
    """Privileges of a system that does not grant the second one."""
    found = privileges.Privilege("locked memory", True, ""), privileges.Privilege("priority", False, "run ulimit -r 99")
    monkeypatch.setattr(privileges, "acquire", lambda pacing: nullcontext(found))
    return found


def test_strict_refuses_to_start_without_its_privileges_at_every_attempt(bench_of, missing, command, said):
    bench = bench_of(paced=True, hardware=True, strict=True)
    bench.scheduler.prepare()
    for _ in range(2):
        with pytest.raises(InputError) as caught:
            bench.scheduler.arm()
        said(caught.value)
        assert caught.value.exit_code == 2 and bench.scheduler.state is SchedulerState.READY
    bench.scheduler.close()
    assert "enable a" not in bench.log and "enable b+c" not in bench.log
    Path("kept.mcap").write_bytes(b"what was recorded before")
    said(command.refuses("run", "rig.yaml", "--set", "schedule.realtime=strict", "--record", "kept.mcap"))
    assert Path("kept.mcap").read_bytes() == b"what was recorded before"


def test_without_strict_missing_privileges_are_reported(bench_of, missing):
    scheduler = bench_of(paced=True).start(3)
    Ticks(scheduler)
    assert scheduler.privileges == missing == scheduler.timing.privileges


@pytest.fixture
def native_scheduler(tmp_path):
    """The scheduler of an armed rig whose ticks are all compiled."""
    body = "{name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}"
    scheduler = rig_in(tmp_path, f"mechanism: {{bodies: [{body}]}}").scheduler()
    scheduler.prepare()
    scheduler.arm()
    return scheduler


def test_a_viewed_block_is_in_the_ring_and_one_that_is_read_is_not(native_scheduler):
    """What waits to be read survives further ticks."""
    with native_scheduler as scheduler:
        scheduler.start(20_000)
        ring = scheduler.mode._ticks._ring
        viewed, read = scheduler.read_view(), scheduler.read()
        assert np.shares_memory(viewed.rows, ring.rows) and not np.shares_memory(read.rows, ring.rows)
        blocks = [read]
        while (block := scheduler.read()) is not None:
            blocks.append(block)
    numbers = np.concatenate([block.numbers for block in blocks])
    np.testing.assert_array_equal(numbers, np.arange(len(viewed.numbers), 20_000))
    times = np.concatenate([block.rows[:, scheduler.engine.program.time] for block in blocks])
    np.testing.assert_allclose(times, numbers * scheduler.engine.tick_model.step, atol=1e-9)


def test_blocks_that_wait_keep_their_rows(native_scheduler):
    with native_scheduler as scheduler:
        scheduler.start(50_000)
        scheduler.wait()
        scheduler.pause()
        scheduler.step(30_000)  # many times the ring
        blocks = list(iter(scheduler.read, None))
    rows = np.concatenate([block.rows for block in blocks])
    assert len(rows) > 30_000
    times = rows[:, scheduler.engine.program.time]
    np.testing.assert_allclose(times, np.arange(len(rows)) * scheduler.engine.tick_model.step, atol=1e-9)


def test_motors_are_held_until_the_ticks_are_next_in_the_thread_of_the_loop(bench_of):
    """On a machine under load the hand-over from another thread may take longer than the watchdog of a drive."""
    bench = bench_of(paced=True)
    bench.scheduler.prepare()
    engine, mode, order = bench.scheduler.engine, bench.scheduler.mode, []
    ended = threading.Event()
    engine.begin_hold = lambda: lambda: (ended.wait(10.0), order.append("held"))
    run_ticks = engine.run_ticks
    engine.run_ticks = lambda *given: (order.append("ticks"), run_ticks(*given))

    def end_hold():
        order.append(f"submitted {not mode.future.done()}")
        ended.set()

    engine.end_hold = end_hold
    engine.hardware = True
    bench.scheduler._check_plan = lambda *given: None
    bench.scheduler.arm()
    bench.scheduler.start(3)
    assert Ticks(bench.scheduler).numbers == [0, 1, 2]
    assert order == ["submitted True", "held", "ticks"]
