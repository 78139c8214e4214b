"""Real drivers that a compiled loop calls, alone and beside one in machine code, whatever they do; its emergency stop
and its watchdog. The Python engine does the same, with the same words."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest

from cosim.core.driver_contract import CycleOutcome
from cosim.core.errors import RunError
from cosim.execution import hardware_engine, paced
from cosim.execution.bus_engine import BusEngine
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.python_engine import PythonEngine
from cosim.execution.scheduler import FOREVER, Scheduler, SchedulerState
from cosim.execution.timing.watchdog import Watchdog
from cosim.plugins.drivers import sim
from cosim.rig.wiring.drivers import safety_of
from cosim.simulation.loop.pacing import Pacing
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.clock import MS, FakeClock
from tests.kit.hardware import HardwareStub
from tests.kit.rigs import rig_in

from .test_group_cycle import Playing

PATIENCE = 60.0  # s; what takes so long has failed
RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: b, parent: base, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: s, parent: base, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
joints: {all: {limits: {lower: -4, upper: 4, velocity: 20, effort: 100}}}
drivers:
  - {name: a, type: serial_text, port: {port: a, baudrate: 1e6}, joints: {a: {id: 1}}}
  - {name: b, type: serial_text, port: {port: b, baudrate: 1e6}, joints: {b: {id: 1}}}
controllers: [{type: pid, kp: 1, ki: 0, kd: 1}]
guard: {stale: 1 h, GUARD}
schedule: {step: 1 ms, duration: 100 ms, realtime: {warm_up: 60}}
"""


class Drive(HardwareStub):
    """At rest at 0.1 rad; `then[call, k]` is called in its k-th call of this kind since it was enabled."""

    def __init__(self, joint: str, clock: FakeClock, log: list[str]) -> None:
        self.joints, self.clock, self.log = (joint,), clock, log
        self.then: dict[tuple[str, int], Callable[[Any], object]] = {}
        self.counts: dict[str, int] = {}
        self.stopped = threading.Event()

    def enable(self, mode: str) -> None:
        self.stopped.clear()

    def begin(self) -> None:
        """The first tick follows."""
        self.counts = {"read": 0, "write": 0}
        self.log.clear()

    def _note(self, call: str, argument: Any) -> None:
        if self.counts:
            self.log.append(f"{call} {self.joints[0]}")
            k = self.counts[call]
            self.counts[call] += 1
            self.then.get((call, k), lambda argument: None)(argument)

    def read(self, out, deadline_ns):
        out.position[:], out.velocity[:], out.effort[:], out.fault[:] = 0.1, 0.0, 0.0, 0
        out.t_ns = self.clock.now()
        self._note("read", out)

    def write(self, cmd, deadline_ns):
        self._note("write", cmd)

    def stop(self):
        self.log.append(f"stop {self.joints[0]}")
        self.stopped.set()


class PlayingDrive(Playing):
    """The same in machine code, whose reads end as a test says."""

    def __init__(self, joint: str, clock: FakeClock, log: list[str]) -> None:
        super().__init__()
        self.joints, self.clock, self.log = (joint,), clock, log
        self.outcomes: dict[int, CycleOutcome] = {}
        self.counts: dict[str, int] = {}
        self.stopped = threading.Event()
        self.fault = 0
        self.plays = 0

    def load_cycle(self) -> None:
        return None

    def begin(self) -> None:
        self.plays = 0

    def read(self, out, deadline_ns):
        out.t_ns, out.position[:], out.fault[:] = self.clock.now(), 0.1, self.fault

    def write(self, cmd, deadline_ns):
        return None

    def stop(self):
        self.log.append(f"stop {self.joints[0]}")
        self.stopped.set()

    def compile(self):
        cycle: Any = super().compile()
        cycle.take_over, cycle.check = lambda deadline_ns: True, lambda outcome: None
        return cycle

    def _play(self, *_: int) -> int:
        self.sample = self.clock.now(), 0.1, 0.0
        self.log.append(f"machine code {self.joints[0]}")
        self.plays += 1
        super()._play()
        return self.outcomes.get(self.plays - 1, CycleOutcome.NOMINAL)


class Bench:
    """A scheduler, paced by a fake clock, around two real drives and a simulated one."""

    def __init__(self, rig: Any, kind: type, second: type = Drive) -> None:
        self.log: list[str] = []
        # machine code compares samples with the real clock: they are not older than this test
        self.clock = FakeClock(time=time.monotonic_ns(), reading=1000)
        self.rig, plant = rig, VirtualPlant(rig.tick_model)
        self.a, self.b = Drive("a", self.clock, self.log), second("b", self.clock, self.log)
        names = {name: k for k, name in enumerate(rig.joints)}
        own = np.array([names["s"]])
        groups = [DriverGroup(sim.load(("s",), own, rig.limits.at(own), plant), own)]
        for drive, called in ((self.a, True), (self.b, second is Drive)):
            groups.append(DriverGroup(drive, np.array([names[drive.joints[0]]]), real=True, called=called))
        safety = safety_of(rig.spec.guard, True, rig.tick_model.step, rig.spec.source.place)
        engine = kind(rig.tick_model, plant, groups, **safety)
        self.scheduler = Scheduler(lambda: engine, Pacing(warm_up=60), rig.tasks, clock=self.clock)
        self.clock.then = {0: self._begin}

    def _begin(self) -> None:
        """Hold commands have ended."""
        self.a.begin()
        self.b.begin()

    def start(self, ticks: int = FOREVER) -> None:
        self.scheduler.prepare()
        self.scheduler.arm()
        self.scheduler.start(ticks)

    def run(self, ticks: int = FOREVER) -> list[int]:
        """The numbers of the ticks until the end."""
        self.start(ticks)
        return [int(number) for block in iter(self.scheduler.read, None) for number in block.numbers]


@pytest.fixture
def bench_of(tmp_path):
    made = []

    def make(kind=BusEngine, second=Drive, guard="watchdog: 30"):
        made.append(Bench(rig_in(tmp_path, RIG.replace("GUARD", guard)), kind, second))
        return made[-1]

    yield make
    for bench in made:
        bench.scheduler.close()


ENGINES = pytest.mark.parametrize("kind", [PythonEngine, BusEngine])
MEASURED = r"[\d.]+ ms", r"\S+test_called_drivers\.py:\d+"  # hold commands read the clock too, before the run
TICK = ["read a", "read b", "write a", "write b"]


def test_each_tick_calls_every_drive_once(bench_of):
    bench = bench_of()
    assert bench.rig.why_python_loop == "" and list(bench.rig.called) == ["a", "b"]
    assert bench.run(5) == [0, 1, 2, 3, 4] and bench.scheduler.fault == ""
    assert bench.log[:20] == TICK * 5
    assert bench.a.stopped.is_set() and bench.b.stopped.is_set()


def raising(error):
    def fail(_):
        raise error

    return fail


def report_fault(out):
    out.fault[:] = 7


def jump(out):
    out.position[:] = 3.0


ENDS = {
    "error of its library": raising(ZeroDivisionError("by nothing")),
    "lost connection": raising(RunError("the connection is lost", "can0")),
    "exit": raising(SystemExit("gone")),
    "fault": report_fault,
    "jump": jump,
}
CASES = [(call, what) for call in ("read", "write") for what in ENDS if call == "read" or what not in ("fault", "jump")]


@ENGINES
@pytest.mark.parametrize(("call", "what"), CASES)
def test_what_a_drive_does_ends_the_run_with_the_same_words(bench_of, kind, call, what, said):
    bench = bench_of(kind)
    bench.b.then[call, 3] = ENDS[what]
    if what == "exit":
        with pytest.raises(SystemExit):
            bench.run()
    else:
        assert bench.run() == [0, 1, 2]
    last = TICK.index(f"{call} b") + 1
    calls = [line for line in bench.log if not line.startswith("stop")]
    assert calls == TICK * 3 + TICK[:last]  # nothing is sent after it
    assert bench.a.stopped.is_set() and bench.b.stopped.is_set()
    said(bench.scheduler.engine.failure, *MEASURED)


@ENGINES
def test_a_drive_that_hangs_is_switched_off_by_another_thread(bench_of, kind, monkeypatch, said):
    bench = bench_of(kind)
    monkeypatch.setattr(paced, "STOP_TIMEOUT", 0.05)
    ordered = threading.Event()

    def hang(_):
        ordered.set()
        assert bench.a.stopped.wait(PATIENCE)

    bench.a.then["read", 3] = hang
    bench.start()
    scheduler = bench.scheduler
    assert ordered.wait(PATIENCE)
    scheduler.stop()
    assert scheduler.state is SchedulerState.FAULT
    said(scheduler.fault.replace("0.05", "2"))
    scheduler.mode.future.result(PATIENCE)
    assert bench.a.counts == {"read": 4, "write": 3} and bench.b.counts["write"] == 3


@ENGINES
def test_the_watchdog_switches_off_what_hangs(bench_of, kind, monkeypatch, said):
    hangs = threading.Event()
    times = count(step=10**8)  # ns, each reading takes so long while it hangs
    dog = partial(Watchdog, clock=lambda: next(times) if hangs.is_set() else 0, sleep=lambda seconds: hangs.wait(1e-3))
    monkeypatch.setattr(hardware_engine, "Watchdog", dog)
    bench = bench_of(kind, guard="watchdog: 0.5")

    def hang(_):
        hangs.set()
        assert bench.a.stopped.wait(PATIENCE)

    bench.b.then["write", 3] = hang
    assert bench.run() == [0, 1, 2]
    assert bench.a.counts == bench.b.counts == {"read": 4, "write": 4}
    said(bench.scheduler.fault)


@ENGINES
def test_commands_that_are_too_late_are_not_sent(bench_of, kind):
    """The program was suspended for half a second in tick 3."""
    bench = bench_of(kind)

    def suspend(_):
        bench.clock.time += 500 * MS

    bench.a.then["read", 3] = suspend
    bench.run(6)
    assert bench.scheduler.engine.hardware_manager.unsent == [0, 1, 1]
    assert bench.a.counts["write"] == bench.b.counts["write"] == 5


@ENGINES
def test_the_emergency_stop_is_read_before_the_feedback(bench_of, kind, tmp_path, said):
    file = tmp_path / "estop"
    file.write_text("0")
    bench = bench_of(kind, guard=f"estop: {{file: {file}}}, watchdog: 30")
    bench.b.then["write", 3] = lambda _: file.write_text("1")
    assert bench.run() == [0, 1, 2, 3]
    assert bench.a.counts == bench.b.counts == {"read": 4, "write": 4}
    assert bench.a.stopped.is_set() and bench.b.stopped.is_set()
    said(bench.scheduler.fault.replace(str(file), "estop"))


# --- beside a drive in machine code ---

MIXED = ["read a", "machine code b", "write a", "machine code b"]


def test_called_drives_and_those_in_machine_code_share_a_tick(bench_of):
    bench = bench_of(second=PlayingDrive)
    assert bench.run(4) == [0, 1, 2, 3] and bench.scheduler.fault == ""
    assert bench.log[:16] == MIXED * 4
    assert bench.scheduler.engine.calls_python


@pytest.mark.parametrize("what", ["error of its library", "fault", "jump"])
def test_a_called_drive_ends_the_run_of_one_in_machine_code(bench_of, what, said):
    bench = bench_of(second=PlayingDrive)
    bench.a.then["read", 3] = ENDS[what]
    assert bench.run() == [0, 1, 2]
    assert bench.log[12:14] == ["read a", "machine code b"]  # which stops its motor
    assert bench.a.stopped.is_set() and bench.b.stopped.is_set()
    said(bench.scheduler.fault, *MEASURED)


def test_a_fault_in_machine_code_is_judged_by_its_driver_alone(bench_of, said):
    bench = bench_of(second=PlayingDrive)
    bench.b.outcomes[6], bench.b.fault = CycleOutcome.SUSPECT, 0
    bench.a.then["read", 3] = lambda _: setattr(bench.b, "fault", 9)
    assert bench.run() == [0, 1, 2]
    assert bench.a.counts == {"read": 4, "write": 3}  # it is not read again
    said(bench.scheduler.fault)
