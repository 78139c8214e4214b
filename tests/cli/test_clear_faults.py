"""Clearing the faults of drives, from the option to the drivers: what is done in which order, and what is said."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from cosim.core.errors import InputError, RunError
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.motion_plan import MotionPlan
from cosim.execution.native_engine import NativeEngine
from cosim.execution.python_engine import PythonEngine
from cosim.execution.scheduler import Scheduler, SchedulerState
from cosim.plugins.drivers import sim
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.hardware import HardwareStub
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in

BODY = "{name: %s, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}"
RIG = f"mechanism: {{bodies: [{', '.join(BODY % name for name in 'abc')}]}}"
REAL = (
    f"mechanism: {{bodies: [{BODY % 'a'}]}}"
    + """
joints: {a: {limits: {velocity: 1, effort: 1}}}
drivers: [{type: moteus, bus: {interface: virtual, channel: nobody, fd: true}, joints: {a: {id: 1}}}]
"""
)
HOT = "joint 'b': the fault persists: over temperature; let it cool down"


class Drive(HardwareStub):
    """A driver that notes what is done with it; `refusal` is raised by `enable`, `stands` by `clear`."""

    def __init__(self, inner, log):
        self.inner, self.log, self.name = inner, log, "+".join(inner.joints)
        self.refusal = self.stands = None

    def __getattr__(self, what):
        return getattr(self.inner, what)

    def note(self, what, error=None):
        self.log.append(f"{what} {self.name}")
        if error is not None:
            raise error

    def open(self):
        self.note("open")
        self.inner.open()

    def clear(self):
        self.note("clear", self.stands)

    def enable(self, mode):
        self.note("enable", self.refusal)
        self.inner.enable(mode)

    def read(self, out, deadline_ns):
        self.inner.read(out, deadline_ns)
        out.t_ns = deadline_ns

    def stop(self):
        self.note("stop")

    def close(self):
        self.note("close")


class Bench:
    """A scheduler around a simulated joint, a and two that pass for real ones, b and c."""

    def __init__(self, rig):
        self.rig, self.log = rig, []
        self.virtual_plant, self.drives = VirtualPlant(rig.tick_model), {}
        for k, name in enumerate(rig.joints):
            index = np.array([k])
            self.drives[name] = Drive(sim.load((name,), index, rig.limits.at(index), self.virtual_plant), self.log)
        self.scheduler = Scheduler(self.engine)

    def engine(self):
        groups = [DriverGroup(drive, np.array([k]), real=k > 0) for k, drive in enumerate(self.drives.values())]
        return PythonEngine(self.rig.tick_model, self.virtual_plant, groups)

    def refused(self, what, *arguments, **keys):
        return str(raised(RunError, getattr(self.scheduler, what), *arguments, **keys))


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    return rig_in(tmp_path_factory.mktemp("rig"), RIG, interpret=True)


@pytest.fixture
def bench(rig):
    made = Bench(rig)
    yield made
    made.scheduler.close()


def test_real_drives_are_cleared_when_all_are_open_and_none_is_on(bench):
    bench.scheduler.prepare(clear=True)
    bench.scheduler.arm()
    assert bench.log[:5] == ["open a", "open b", "open c", "clear b", "clear c"]
    assert sorted(bench.log[5:]) == ["enable a", "enable b", "enable c"]


def test_a_persistent_fault_closes_all_drivers(bench):
    bench.drives["b"].stands = RunError(HOT)
    assert bench.refused("prepare", clear=True) == HOT
    ended = [*("stop a", "stop b", "stop c"), *("close a", "close b", "close c")]
    assert bench.log == ["open a", "open b", "open c", "clear b", *ended]
    assert bench.scheduler.state is SchedulerState.CONFIGURED
    assert bench.refused("arm") == "cannot arm a rig that is configured; it must be ready or stopped"


def test_a_driver_that_fails_while_it_clears_is_named(bench):
    bench.drives["c"].stands = ZeroDivisionError("by nothing")
    reported = bench.refused("prepare", clear=True)
    assert reported.startswith("the driver of c failed: ZeroDivisionError: by nothing (") and "\n" not in reported
    assert bench.log[-3:] == ["close a", "close b", "close c"]


def test_a_rig_that_is_ready_or_stopped_can_be_cleared(bench):
    bench.scheduler.prepare()
    assert bench.log == ["open a", "open b", "open c"]  # faults are cleared on request only
    bench.scheduler.clear()
    assert bench.log[3:] == ["clear b", "clear c"]
    bench.scheduler.arm()
    assert bench.refused("clear") == "cannot clear a rig that is armed; it must be ready or stopped"
    bench.scheduler.stop()
    del bench.log[:]
    bench.scheduler.clear()
    assert bench.log == ["clear b", "clear c"] and bench.scheduler.state is SchedulerState.STOPPED


def test_a_rig_whose_fault_stands_is_closed(bench):
    bench.scheduler.prepare()
    bench.drives["c"].stands = RunError(HOT)
    assert bench.refused("clear") == HOT
    assert {"close a", "close b", "close c"} <= set(bench.log)
    assert bench.refused("arm") == "cannot arm a rig that was closed; make a new scheduler"


def test_in_machine_code_there_is_nothing_to_clear(bench):
    with Scheduler(lambda: NativeEngine(bench.rig.tick_model)) as scheduler:
        scheduler.prepare(clear=True)
        assert scheduler.state is SchedulerState.READY


@pytest.mark.parametrize("place", [None, "b"])
def test_a_latched_fault_is_reported_with_the_fix(bench, place):
    bench.scheduler.prepare()
    bench.drives["b"].refusal, bench.drives["b"].latched = RunError("watchdog; look at the line", place), True
    reported = "watchdog; look at the line; fix the cause, then run with --clear-faults"
    assert bench.refused("arm") == (f"{place}: {reported}" if place else reported)
    assert "enable b" in bench.log and bench.log[-3:] == ["stop a", "stop b", "stop c"]


@pytest.mark.parametrize("latched", [{}, {"latched": False}], ids=["not said", "said"])
def test_a_fault_that_cannot_be_cleared_is_reported_unchanged(bench, latched):
    bench.scheduler.prepare()
    bench.drives["b"].refusal = RunError("b did not switch on; check its supply")
    vars(bench.drives["b"]).update(latched)
    assert bench.refused("arm") == "b did not switch on; check its supply"


def test_without_real_motors_there_is_nothing_to_clear(command):
    with pytest.raises(InputError, match="--clear-faults: there are no real motors in this rig; take it out"):
        load_rig("rig.yaml").run(0.01, clear_faults=True)


@pytest.fixture
def done(monkeypatch):
    """What was done with a rig, which goes no further than to its clearing, or arming."""
    done = []

    def until(name):
        def stop(*_, **__):
            done.append(name)
            raise RunError("as far as this goes")

        return stop

    monkeypatch.setattr(Scheduler, "prepare", lambda self: done.append("prepare"))
    monkeypatch.setattr("cosim.rig.run.consent.wait_for_rest", lambda *_: done.append("rest"))
    monkeypatch.setattr(Scheduler, "plan", lambda self, ticks: done.append("plan") or MotionPlan((), 0.0))
    monkeypatch.setattr(Scheduler, "clear", until("clear"))
    monkeypatch.setattr("cosim.rig.run.session.RunRecorder", until("record"))
    return done


@pytest.mark.parametrize("option", [(), ("--clear-faults",)])
def test_faults_are_cleared_once_somebody_has_agreed(command, done, tmp_path, option):
    (tmp_path / "real.yaml").write_text(REAL)
    code, out, (line,) = command("run", "real.yaml", *option)
    assert code == 2 and "a" in out and line.startswith("--yes: real motors would move")
    assert done == []
    code, _, err = command("run", "real.yaml", "--yes", *option)
    assert (code, err) == (1, ["real.yaml: as far as this goes" if option else "as far as this goes"])
    assert done == ["prepare", "rest", "plan", "clear" if option else "record"]
