"""A run on time can be left at any moment: waits, controllers that do not return, schedulers that nobody closes."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from cosim.compile import ArrayPort, compile
from cosim.compile.trace import trace
from cosim.errors import InputError, RunError
from cosim.execution.scheduler import SchedulerState
from cosim.rig.run import StoppedRun
from cosim.timing.clocks import NO_TRIGGER, NativeClock, TriggerClock
from cosim.timing.daemon_executor import DaemonExecutor
from tests.kit.rigs import rig_in

FAR = 10**15  # ns
RIG = """
mechanism:
  bodies: [{name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}]
controllers: [{name: c, type: own.py}]
schedule: {realtime: {warm_up: 0 s, rate: 0.25}, duration: 60 s}  # a busy machine keeps 4 ms
"""
OWN = """
import sys
import threading
import numpy as np
from cosim.types import COMMAND, joint_signals, params

WAITS, GO_ON = threading.Event(), threading.Event()

def wait():
    WAITS.set()
    GO_ON.wait()

@params
class Params: ...

class Own:
    def __init__(self, params, context):
        self.params = params
        self.inputs, self.outputs = joint_signals(("position",), 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        if float(t) > 0.1:  # not in the rehearsal
            WHAT
        return {}, {name: np.zeros(1) for name in COMMAND}

load = Own
"""


@pytest.fixture
def rig_of(tmp_path):
    def load(what="pass", *overrides):
        return rig_in(tmp_path, RIG, *overrides, own=OWN.replace("WHAT", what))

    return load


def flags(rig):
    """(set when the controller begins to wait, what it waits for)."""
    names = type(rig.tick_model.loops[0].block).update.__globals__
    return names["WAITS"], names["GO_ON"]


def leave_from_elsewhere(clock, due):
    """What a wait gives that is left by another thread."""
    thread = threading.Timer(0.02, clock.interrupt)
    thread.start()
    try:
        return clock.wait(due)
    finally:
        thread.join()


def test_a_sleep_is_left():
    clock = NativeClock()
    begun = clock.now()
    assert begun < leave_from_elsewhere(clock, begun + FAR) < begun + FAR
    assert clock.wait(begun + FAR) < begun + FAR  # the next one, too
    clock.begin()
    assert clock.wait(clock.now() + 1000) >= begun


def test_a_wait_for_a_trigger_is_left(tmp_path):
    import os

    os.mkfifo(tmp_path / "triggers")
    clock = TriggerClock(str(tmp_path / "triggers"), FAR)
    file = os.open(tmp_path / "triggers", os.O_WRONLY)
    assert leave_from_elsewhere(clock, 0) == NO_TRIGGER
    clock.begin()
    os.write(file, b"x")
    assert clock.wait(0) > 0
    os.close(file)
    clock.close()


def test_a_wait_for_a_message_is_left():
    import can

    from cosim.timing.clock_sources import CanClock

    clock = CanClock("virtual", "left", 0x80, 1e6)
    assert leave_from_elsewhere(clock, 0) == NO_TRIGGER
    clock.begin()
    with can.Bus(interface="virtual", channel="left") as sender:
        sender.send(can.Message(arbitration_id=0x80, is_extended_id=False))
        assert clock.wait(0) > 0
    clock.close()


@pytest.mark.parametrize("end", ["stop", "pause", "close"])
def test_a_distant_tick_does_not_delay_a_stop(rig_of, end):
    with rig_of("pass", "schedule.step=1000 s", "schedule.duration=1 h").scheduler() as scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start()
        assert scheduler.read() is not None  # the first tick is due at once
        getattr(scheduler, end)()
        assert scheduler.state is (SchedulerState.PAUSED if end == "pause" else SchedulerState.STOPPED)


def test_a_controller_that_does_not_return_is_stopped_by_force(rig_of, monkeypatch):
    monkeypatch.setattr("cosim.execution.paced.STOP_TIMEOUT", 0.05)
    monkeypatch.setattr("cosim.rig.status_reports.PERIOD", 0.0)
    rig = rig_of("wait()")

    def interrupt(status):
        if status.fraction >= 101 / 60001:
            flags(rig)[0].wait()
            raise KeyboardInterrupt

    with pytest.raises(StoppedRun) as caught:
        rig.run(progress=interrupt)
    run = caught.value.run
    assert run.fault == (
        "stopped at tick 101 (t = 0.101 s): controller 'c' has not returned for 0.05 s; check what it waits for"
    )
    assert len(run.t) == 101


def test_what_was_stopped_by_force_writes_nothing_any_more(rig_of, monkeypatch):
    monkeypatch.setattr("cosim.execution.paced.STOP_TIMEOUT", 0.05)
    rig = rig_of("wait()")
    waits, go_on = flags(rig)
    with rig.scheduler() as scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start()
        waits.wait()
        scheduler.stop()
        assert scheduler.state is SchedulerState.FAULT
        scheduler.reset()
        with pytest.raises(RunError, match=r"^the last run has not ended, it still waits; close it and make a"):
            scheduler.arm()
        go_on.set()
        scheduler.mode.future.exception()  # it ends
        assert scheduler.engine.number == 101


@pytest.mark.parametrize("end", ["read", "stop"])
def test_what_the_watchdog_gave_up_ends_with_its_sentence_although_it_never_returns(rig_of, monkeypatch, end):
    monkeypatch.setattr("cosim.execution.paced.STOP_TIMEOUT", 0.05)
    rig = rig_of("wait()", "guard.watchdog=0.5", "guard.estop={interface: virtual, channel: hung, id: 1}")
    with rig.scheduler() as scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start()
        while not scheduler.engine.force_stopped:
            time.sleep(0.01)
        for _ in iter(getattr(scheduler, end), None):
            pass
        assert (scheduler.state, scheduler.mode.future.done()) == (SchedulerState.FAULT, False)
        assert scheduler.fault == (
            "stopped at tick 101 (t = 0.101 s): the loop has not finished a tick for 0.5 s; check what blocks it,"
            " a controller or a bus, or use a longer watchdog time (in controller 'c')"
        )
    type(rig.tick_model.loops[0].block).update.__globals__["GO_ON"].set()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
@pytest.mark.parametrize("ignored", [False, True])
def test_whatever_ends_a_program_interrupts_it_unless_it_is_ignored(name, ignored):
    code = (
        "import signal\nfrom cosim.execution.posix_signals import raise_on_termination\n"
        f"signal.signal(signal.{name}, signal.{'SIG_IGN' if ignored else 'SIG_DFL'})\nraise_on_termination()\n"
        f"try:\n    signal.raise_signal(signal.{name})\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "" if ignored else "interrupted\n")


def test_a_scheduler_that_is_forgotten_stops(rig_of):
    scheduler = rig_of().scheduler()
    scheduler.prepare()
    scheduler.arm()
    scheduler.start()
    engine, taking = scheduler.engine, scheduler.mode.future
    del scheduler
    gc.collect()
    assert taking.done() and engine.view("request").tolist() == [0.0]
    assert gc.isenabled()


def test_a_program_that_fails_during_a_run_ends(rig_of, tmp_path):
    rig_of()
    text = (
        "from cosim import load_rig\n"
        f"s = load_rig({str(tmp_path / 'rig.yaml')!r}).scheduler()\n"
        "s.prepare(); s.arm(); s.start()\n"
        "raise ValueError('mine')\n"
    )
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert found.returncode == 1 and found.stderr.splitlines()[-1] == "ValueError: mine"


def test_a_controller_that_wants_to_exit_fails_like_any_other(rig_of):
    with pytest.raises(StoppedRun) as caught:
        rig_of("sys.exit(3)").run()
    assert caught.value.run.fault.startswith(
        "stopped at tick 101 (t = 0.101 s): controller 'c' failed: SystemExit: 3 ("
    )


def test_a_run_that_is_refused_leaves_the_recording_alone(rig_of, tmp_path, monkeypatch):
    from contextlib import contextmanager

    from cosim.timing import privileges

    @contextmanager
    def take(pacing):
        yield (privileges.Privilege("locked memory", False, "ulimit -l"),)

    monkeypatch.setattr(privileges, "acquire", take)
    kept = tmp_path / "kept.mcap"
    kept.write_bytes(b"what was recorded before")
    with pytest.raises(InputError, match="strict, but this system does not grant locked memory"):
        rig_of("pass", "schedule.realtime.strict=true").run(record=kept)
    assert kept.read_bytes() == b"what was recorded before"


@pytest.mark.parametrize("ticks", [0, -5, 1.5, "x"])
def test_what_is_no_number_of_ticks_is_refused(rig_of, ticks):
    with rig_of("pass", "schedule.realtime=no").scheduler() as scheduler:
        scheduler.prepare()
        scheduler.arm()
        with pytest.raises(RunError) as caught:
            scheduler.start(ticks)
        assert str(caught.value) == f"cannot run {ticks!r} ticks; give a whole number of 1 or more"
        assert scheduler.state is SchedulerState.ARMED


def test_missing_timing_is_reported(rig_of):
    scheduler = rig_of().scheduler()
    with pytest.raises(RunError, match=r"^there is no timing before the rig is prepared$"):
        _ = scheduler.timing
    hurried = rig_of("pass", "schedule.realtime=no").scheduler()
    with pytest.raises(RunError, match=r"^a free run has no timing; run the rig with realtime=True"):
        _ = hurried.timing


# --- threads ----------------------------------------------------------------------------------------


def test_functions_are_traced_in_several_threads_at_once():
    """Each trace keeps to its own thread, however they take turns."""
    turns = threading.Barrier(2)

    def f(x):
        turns.wait(10)
        y = x * 2.0
        turns.wait(10)
        return y + 1.0

    found = []
    threads = [threading.Thread(target=lambda: found.append(trace(f, [(2,)], "f"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and not any(each.calls for each in found)


def test_functions_are_compiled_in_several_threads_at_once():
    found = []

    def work(k):
        f = compile(lambda x: x * float(k), [ArrayPort("x", (3,))], "scaled")
        found.append((k, f(np.ones(3)).tolist()))

    threads = [threading.Thread(target=work, args=(k % 2,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(k, [float(k)] * 3) for k in (0, 0, 0, 1, 1, 1)]


def test_a_worker_does_one_thing_after_another_and_ends():
    worker, done = DaemonExecutor("w"), []
    first, second = worker.submit(done.append, 1), worker.submit(lambda: 1 / 0)
    assert first.result() is None and isinstance(second.exception(), ZeroDivisionError)
    assert worker.submit(lambda a, b: a + b, 1, 2).result() == 3
    worker.close(10.0)
    assert done == [1] and not [t for t in threading.enumerate() if t.name == "w"]
