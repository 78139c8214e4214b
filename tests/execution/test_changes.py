"""Changes of the memory between two ticks: in real time, in a pause and planned, with the same results to the bit."""

import time

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.execution.execution_mode import PlannedChange
from cosim.execution.scheduler import Scheduler
from cosim.simulation.loop.pacing import Pacing
from cosim.simulation.loop.tick_ring import SharedWord
from tests.kit.clock import FakeClock
from tests.kit.engines import python_engine
from tests.kit.processes import until
from tests.kit.rigs import rig_in

RIG = """
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1], com: [0.1, 0, 0]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
controllers:
  - {name: hold, type: CONTROLLER, kp: 100, kd: 3}
schedule: {step: 1 ms}
"""
# `float` keeps it in Python
OWN = """
import numpy as np
from cosim.plugin import COMMAND, FEEDBACK, joint_signals, param, params

@params
class Params:
    kp: float = param()
    kd: float = param()

class Own:
    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals(FEEDBACK, 2), joint_signals(COMMAND, 2)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        rest = {name: np.zeros(2) for name in COMMAND}
        first = float(u["position"][0])
        return {}, rest | {"effort": p.kp * (0.1 - first) * np.ones(2) - p.kd * u["velocity"]}

load = Own
"""
TICKS = 60


@pytest.fixture(scope="module", params=["machine code", "Python controller", "Python engine"])
def case(request, tmp_path_factory):
    """(rig, a new engine of it)."""
    controller = "own.py" if request.param == "Python controller" else "pd_gravity"
    trajectory = "" if controller == "own.py" else ", trajectory: {type: sine, amplitude: 0.1, frequency: 1 Hz}"
    text = RIG.replace("CONTROLLER", controller).replace("kd: 3", f"kd: 3{trajectory}")
    rig = rig_in(tmp_path_factory.mktemp("rig"), text, own=OWN)
    return rig, (lambda: python_engine(rig)) if request.param == "Python engine" else rig.engine


def gains(rig, kp, kd):
    """(places, values) of the parameters of the controller."""
    first = rig.tick_model.layout.place("parameters").where.start
    fields = rig.tick_model.loops[0].tunables.fields
    values = np.concatenate([np.full(fields[k].stop - fields[k].start, value) for k, value in (("kp", kp), ("kd", kd))])
    return first + np.arange(len(values)), values


def rows_of(scheduler):
    return np.concatenate([block.rows for block in iter(scheduler.read, None)])


def planned(case, changes):
    rig, engine = case
    with Scheduler(
        engine, planned=[PlannedChange(tick, *gains(rig, *values)) for tick, *values in changes]
    ) as scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start(TICKS)
        return rows_of(scheduler)


@pytest.fixture
def paced(case):
    """(scheduler, its fake clock)."""
    rig, engine = case
    clock = FakeClock()
    with Scheduler(engine, Pacing(overrun="skip", warm_up=0.0), rig.tasks, clock=clock) as scheduler:
        scheduler.prepare()
        yield scheduler, clock


def test_a_change_in_real_time_equals_a_planned_one_to_the_bit(case, paced):
    """The loop waits before some ticks until a change is ordered."""
    rig, _ = case
    scheduler, clock = paced

    def until_ordered():
        while scheduler.mode.ring.changed_at is not None:
            time.sleep(1e-4)

    clock.then = {20: until_ordered, 40: until_ordered}
    scheduler.change(*gains(rig, 90.0, 2.5))
    scheduler.arm()
    scheduler.start(TICKS)
    made = []
    for tick, *values in ((20, 50.0, 1.0), (40, 200.0, 6.0)):
        until(lambda tick=tick: len(clock.waits) >= tick)
        made.append((scheduler.change(*gains(rig, *values)), *values))
    rows = rows_of(scheduler)
    assert 20 <= made[0][0] < made[1][0] < TICKS and len(rows) == TICKS
    np.testing.assert_array_equal(rows, planned(case, [(0, 90.0, 2.5), *made]))
    assert not np.array_equal(rows, planned(case, []))
    later = [(made[0][0] + 1, *made[0][1:]), made[1]]
    assert not np.array_equal(rows, planned(case, [(0, 90.0, 2.5), *later]))  # one tick would be noticed


def test_a_change_in_a_pause_is_made_before_the_next_tick_and_none_after_the_end(case, paced):
    rig, _ = case
    scheduler, clock = paced
    clock.block(20, lambda: scheduler.mode.ring.words[SharedWord.STOP])
    scheduler.arm()
    scheduler.start(TICKS)
    until(lambda: len(clock.waits) >= 20)
    scheduler.pause()
    tick = scheduler.change(*gains(rig, 50.0, 1.0))
    assert tick == scheduler.engine.number
    scheduler.resume()
    scheduler.mode.future.result()
    with pytest.raises(RunError, match="the run has ended"):
        scheduler.change(*gains(rig, 200.0, 6.0))
    rows = rows_of(scheduler)
    with pytest.raises(RunError, match="cannot change a rig that is stopped"):
        scheduler.change(*gains(rig, 200.0, 6.0))
    np.testing.assert_array_equal(rows, planned(case, [(tick, 50.0, 1.0)]))
