"""A signal that ends a run ends it before the next tick, whatever the other threads of the program do."""

import signal

import numpy as np
import pytest

from cosim.control.limits import LIMITS
from cosim.execution.paced import Paced
from cosim.execution.posix_signals import raise_on_termination, termination_signals
from cosim.execution.scheduler import SchedulerState
from cosim.execution.stop_cause import OTHERS, UNKNOWN, WORDS, cause_of
from cosim.rig.run.run import StoppedRun
from cosim.simulation.loop.tick_ring import SharedWord, TickRing
from tests.execution.scheduler_helpers import NATIVE
from tests.execution.scheduler_helpers import RIG as SCHEDULED
from tests.kit.processes import until
from tests.kit.rigs import rig_in

# a stands still, b moves and stops in time
RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
joints: {all: {limits: {velocity: 5}}}
controllers:
  - {name: c, type: own.py, joints: [a]}
  - {name: d, type: pid, joints: [b], kp: 10, ki: 0, kd: 1, trajectory: {type: sine, amplitude: 0.1, frequency: 0.5 Hz}}
guard: GUARD
schedule: {realtime: true, duration: 60 s}
"""
IMMEDIATE, CONTROLLED = "{}", "{deceleration: 4}"
# raises signals in the thread of the loop
OWN = """
import signal
import numpy as np
from cosim.plugin import COMMAND, joint_signals, params

SIGNALS = {}  # tick -> number of the signal

@params
class Params: ...

class Own:
    def __init__(self, params, context):
        self.params = params
        self.inputs, self.outputs = joint_signals(("position",), 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        if number := SIGNALS.get(round(float(t) * 1000)):
            signal.raise_signal(number)
        return {}, {name: np.zeros(1) for name in COMMAND}

load = Own
"""


@pytest.fixture
def stopped(tmp_path, simulated_time):
    """The run of a rig that was stopped by the signals that its controller raises, by tick."""

    def run(signals, guard=IMMEDIATE, **keys):
        rig = rig_in(tmp_path, RIG.replace("GUARD", guard), own=OWN)
        type(rig.tick_model.loops[0].block).update.__globals__["SIGNALS"].update(signals)
        with pytest.raises(StoppedRun) as caught:
            rig.run(**keys)
        return caught.value.run

    return run


@pytest.fixture
def raises_on_termination():
    """As in the command line."""
    before = {number: signal.getsignal(number) for number in termination_signals()}
    raise_on_termination()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("recorded", [False, True])
def test_no_tick_begins_after_the_signal(stopped, tmp_path, recorded):
    """Not in the timing pre-check, which runs fewer ticks; the main thread may compute."""
    keys = {"record": tmp_path / "run.mcap"} if recorded else {"progress": lambda fraction: np.sort(NUMBERS)}
    run = stopped({60: signal.SIGINT}, **keys)
    assert (len(run.t), run.fault) == (61, "interrupted after tick 60")


NUMBERS = np.random.default_rng(0).standard_normal(1 << 20)


def test_a_controlled_stop_begins_with_the_next_tick(stopped):
    run = stopped({60: signal.SIGINT}, CONTROLLED)
    rate = np.diff(run["b/reference_velocity"]) * 1e3
    free = np.diff(0.1 * np.pi * np.cos(np.pi * run.t)) * 1e3  # of the trajectory alone
    assert 1 + np.flatnonzero(np.abs(rate - free) > 0.1)[0] == 61
    assert abs(run["b/reference_velocity"][-1]) < 1e-6 and run.fault == f"interrupted after tick {len(run.t) - 1}"


def test_the_second_signal_stops_immediately(stopped, raises_on_termination):
    run = stopped({60: signal.SIGINT, 70: signal.SIGTERM}, CONTROLLED)
    assert (len(run.t), run.fault) == (71, "interrupted after tick 70")


def test_another_signal_than_that_of_ctrl_c_is_named(stopped, raises_on_termination):
    assert stopped({60: signal.SIGTERM}).fault == "interrupted by SIGTERM after tick 60"


def test_a_signal_before_the_start_returns_makes_a_controlled_stop(stopped, monkeypatch):
    start = Paced.start

    def slow_start(self, ticks, before, end_hold):
        """The thread of the program waits for the processor while ticks run."""
        start(self, ticks, before, end_hold)
        until(lambda: self.ring.words[SharedWord.NUMBER] >= 62)

    monkeypatch.setattr(Paced, "start", slow_start)
    run = stopped({60: signal.SIGINT}, CONTROLLED)
    assert abs(run["b/reference_velocity"][-1]) < 1e-6


def test_a_signal_while_rows_are_read_loses_none(stopped, monkeypatch):
    read = TickRing.read

    def interrupted_read(self, limit):
        rows = read(self, limit)
        if self.words[SharedWord.NUMBER] > 60 and not signalled:
            signalled.append(True)
            signal.raise_signal(signal.SIGINT)
        return rows

    signalled = []
    monkeypatch.setattr(TickRing, "read", interrupted_read)
    run = stopped({})
    assert signalled and len(run.t) >= 61 and np.ptp(np.diff(run.t)) < 1e-9


@pytest.mark.parametrize("native", [False, True])
def test_a_signal_during_a_wait_ends_the_loop_with_its_motors_off(bench_of, native):
    bench = bench_of(NATIVE if native else SCHEDULED, paced=True, native=native)
    bench.clock.then = {5: lambda: signal.raise_signal(signal.SIGINT)}
    with pytest.raises(KeyboardInterrupt), bench.scheduler.signals:
        scheduler = bench.start(100)
        bench.log.clear()
        scheduler.mode.future.result()
        assert scheduler.engine.number == 5
        if not native:
            assert bench.log[-3:] == ["write b+c", "stop a", "stop b+c"]  # by the thread of the loop
        scheduler.wait()
    bench.scheduler.close()
    assert bench.scheduler.state is SchedulerState.STOPPED


# --- the cause of a stop ---

MOTION = ("position", "unseen_motion", "tracking_error", "velocity", "effort", "effort_rate", "power")
FIELDS = {
    **dict.fromkeys(MOTION, "1 rad"),
    **{"temperature": "90 degC", "residual_energy": "-1 J", "load_residual_energy": "1 J", "wall_energy": "1 J"},
    **dict.fromkeys(("shadow_effort", "shadow_drive", "shadow_position", "shadow_slip"), "1 N*m"),
    **{"commanded_effort": "1 N*m", "units": "moves 13 times as far as it is commanded", "units_check": "check"},
    "joint": "elbow 2",
}  # fmt: skip
SENTENCES = {
    "joint 'a' has sent no feedback for 51 ms, more than the 50 ms of guard.stale; check": ("stale", "a"),
    "the load motor of 'a' has sent no feedback for 51 ms, more than the 50 ms": ("stale", "a"),
    "joint 'a' is not finite (position nan rad, velocity 0 rad/s); check": ("not_finite", "a"),
    "joint 'a' is commanded an effort that is not finite (at 0 rad, 0 rad/s); check": ("not_finite", "a"),
    "joint 'a': node 3 reports no number as its position or velocity; check": ("not_finite", "a"),
    "the command of joint 'a', 'b' is not finite and was not sent; check": ("not_finite", "a"),
    "joint 'a' jumped by 1 rad in 2 ms, more than its limit": ("jump", "a"),
    "the drive of joint 'a' reports over temperature (drive error 38); let": ("drive_fault", "a"),
    "the load motor of joint 'a' reports fault 3; clear it first": ("drive_fault", "a"),
    "the load motor of 'a' turns at 3 rad/s, the joint at": ("shaft", "a"),
    "can0: bus off: the controller counted too many errors; check": ("bus_off", ""),
    "/dev/ttyUSB0: the connection is lost (gone); check": ("connection", ""),
    "a command could not be sent by its deadline; the": ("connection", ""),
    "controller 'arm' failed: ValueError: x": ("controller", "arm"),
    "the driver of a, b failed: ValueError: x": ("driver", "a, b"),
    "joint 'a' melted; cool it": (UNKNOWN, ""),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_word_of_a_sentence(sentence):
    assert cause_of(f"stopped at tick 7 (t = 0.007 s): {sentence}") == SENTENCES[sentence]


def test_every_word_has_a_sentence_here():
    assert {word for word, _ in SENTENCES.values()} == {*OTHERS, UNKNOWN}
    assert len(set(WORDS)) == len(WORDS)


@pytest.mark.parametrize("unit", ["rad", "m"])
@pytest.mark.parametrize("row", LIMITS, ids=lambda row: row.key)
def test_the_word_of_a_limit_is_its_key(row, unit):
    """Also after a controlled stop; other fixes may follow the cause."""
    for template in filter(None, (row.reason, row.controlled_stop)):
        limit = row.show([-1.0, 1.5][: len(row.bound_keys)], unit)
        what = template.format(**FIELDS, limit=limit).split("; ")[0]
        assert cause_of(f"stopped at tick 7 (t = 1 s): joint 'elbow 2' {what}; fix it") == (row.key, "elbow 2")
