"""A run on time can be left at any moment: waits, controllers that do not return, schedulers that nobody closes."""

import gc
import os
import subprocess
import sys
import threading
from functools import partial

import can
import numpy as np
import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.trace import trace
from cosim.core.errors import RunError
from cosim.execution.scheduler import SchedulerState
from cosim.execution.timing.clock_sources import CanClock
from cosim.execution.timing.daemon_executor import DaemonExecutor
from cosim.rig.run.run import StoppedRun
from cosim.simulation.loop.clocks import NO_TRIGGER, NativeClock, TriggerClock
from tests.kit.processes import until
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in

FAR = 10**15  # ns
RIG = """
mechanism:
  bodies: [{name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}]
controllers: [{name: c, type: own.py}]
schedule: {realtime: {warm_up: 0 s}, duration: 60 s}
"""
OWN = """
import sys
import threading
import numpy as np
from cosim.plugin import COMMAND, joint_signals, params

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
def rig_of(tmp_path, simulated_time):
    def load(what="pass", *overrides):
        return rig_in(tmp_path, RIG, *overrides, own=OWN.replace("WHAT", what))

    return load


def flags(rig):
    """(set when the controller begins to wait, what it waits for)."""
    names = type(rig.tick_model.loops[0].block).update.__globals__
    return names["WAITS"], names["GO_ON"]


def started(scheduler, *ticks):
    scheduler.prepare()
    scheduler.arm()
    scheduler.start(*ticks)
    return scheduler


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
    clock = CanClock("virtual", "left", 0x80, 1e6)
    assert leave_from_elsewhere(clock, 0) == NO_TRIGGER
    clock.begin()
    with can.Bus(interface="virtual", channel="left") as sender:
        sender.send(can.Message(arbitration_id=0x80, is_extended_id=False))
        assert clock.wait(0) > 0
    clock.close()


@pytest.mark.parametrize("end", ["stop", "pause", "close"])
def test_a_distant_tick_does_not_delay_a_stop(tmp_path, end):
    """By the clock of the machine."""
    far = "schedule.step=1000 s", "schedule.duration=1 h"
    with rig_in(tmp_path, RIG, *far, own=OWN.replace("WHAT", "pass")).scheduler() as scheduler:
        started(scheduler)
        assert scheduler.read() is not None  # the first tick is due at once
        getattr(scheduler, end)()
        assert scheduler.state is (SchedulerState.PAUSED if end == "pause" else SchedulerState.STOPPED)


def test_a_controller_that_does_not_return_is_stopped_by_force(rig_of, monkeypatch, said):
    monkeypatch.setattr("cosim.execution.paced.STOP_TIMEOUT", 0.05)
    monkeypatch.setattr("cosim.rig.run.status_reports.PERIOD", 0.0)
    rig = rig_of("wait()")

    def interrupt(status):
        if status.fraction >= 101 / 60001:
            flags(rig)[0].wait()
            raise KeyboardInterrupt

    with pytest.raises(StoppedRun) as caught:
        rig.run(progress=interrupt)
    said(caught.value.run.fault)
    assert len(caught.value.run.t) == 101
    flags(rig)[1].set()


def test_what_was_stopped_by_force_writes_nothing_any_more(rig_of, monkeypatch):
    monkeypatch.setattr("cosim.execution.paced.STOP_TIMEOUT", 0.05)
    rig = rig_of("wait()")
    waits, go_on = flags(rig)
    with rig.scheduler() as scheduler:
        started(scheduler)
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
def test_what_the_watchdog_gave_up_ends_with_its_sentence_although_it_never_returns(rig_of, monkeypatch, said, end):
    monkeypatch.setattr("cosim.execution.paced.STOP_TIMEOUT", 0.05)
    rig = rig_of("wait()", "guard.watchdog=0.5", "guard.estop={interface: virtual, channel: hung, id: 1}")
    with rig.scheduler() as scheduler:
        started(scheduler)
        until(lambda: scheduler.engine.force_stopped)
        for _ in iter(getattr(scheduler, end), None):
            pass
        assert (scheduler.state, scheduler.mode.future.done()) == (SchedulerState.FAULT, False)
        said(scheduler.fault)
    flags(rig)[1].set()


def test_whatever_ends_a_program_interrupts_it_unless_it_is_ignored():
    code = """
import signal
from cosim.execution.posix_signals import interrupted, raise_on_termination
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    for handler in ("SIG_IGN", "SIG_DFL"):
        signal.signal(getattr(signal, name), getattr(signal, handler))
        raise_on_termination()
        try:
            signal.raise_signal(getattr(signal, name))
        except KeyboardInterrupt as error:
            print(f"{handler}: {interrupted(error)}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    by_name = ("", *(f" by {name}" for name in ("SIGTERM", "SIGHUP", "SIGQUIT")))
    assert (done.returncode, done.stdout.splitlines()) == (0, [f"SIG_DFL: interrupted{words}" for words in by_name])


def test_a_scheduler_that_is_forgotten_stops(rig_of):
    scheduler = started(rig_of().scheduler())
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


def test_what_is_asked_of_a_scheduler_in_vain_is_named(rig_of, said):
    def refused(what):
        said(raised(RunError, what))

    refused(lambda: rig_of().scheduler().timing)
    with rig_of("pass", "schedule.realtime=no").scheduler() as scheduler:
        scheduler.prepare()
        scheduler.arm()
        refused(lambda: scheduler.timing)
        for ticks in (0, -5, 1.5, "x"):
            refused(lambda ticks=ticks: scheduler.start(ticks))
            assert scheduler.state is SchedulerState.ARMED


# --- threads ----------------------------------------------------------------------------------------


def at_once(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_functions_are_traced_in_several_threads_at_once():
    """Each trace keeps to its own thread, however they take turns."""
    turns, found = threading.Barrier(2), []

    def f(x):
        turns.wait(60)
        y = x * 2.0
        turns.wait(60)
        return y + 1.0

    at_once(*[lambda: found.append(trace(f, [(2,)], "f"))] * 2)
    assert len(found) == 2 and not any(each.calls for each in found)


def test_functions_are_compiled_in_several_threads_at_once():
    found = []

    def work(k):
        f = compile(lambda x: x * float(k), [ArrayPort("x", (3,))], "scaled")
        found.append((k, f(np.ones(3)).tolist()))

    at_once(*(partial(work, k % 2) for k in range(6)))
    assert sorted(found) == [(k, [float(k)] * 3) for k in (0, 0, 0, 1, 1, 1)]


def test_a_worker_does_one_thing_after_another_and_ends():
    worker, done = DaemonExecutor("w"), []
    first, second = worker.submit(done.append, 1), worker.submit(lambda: 1 / 0)
    assert first.result() is None and isinstance(second.exception(), ZeroDivisionError)
    assert worker.submit(lambda a, b: a + b, 1, 2).result() == 3
    worker.close(10.0)
    assert done == [1] and not [t for t in threading.enumerate() if t.name == "w"]
