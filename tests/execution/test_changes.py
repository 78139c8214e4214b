"""Changes of the memory between two ticks: in real time, in a pause and planned, with the same results to the bit."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cosim.errors import RunError
from cosim.execution.execution_mode import PlannedChange
from cosim.execution.scheduler import Scheduler
from cosim.timing.pacing import Pacing
from tests.kit.engines import python_engine
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
from cosim.types import COMMAND, FEEDBACK, joint_signals, param, params

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
TICKS = 400


@pytest.fixture(params=["machine code", "Python controller", "Python engine"])
def case(request, tmp_path):
    """(rig, a new engine of it)."""
    controller = "own.py" if request.param == "Python controller" else "pd_gravity"
    trajectory = "" if controller == "own.py" else ", trajectory: {type: sine, amplitude: 0.1, frequency: 1 Hz}"
    text = RIG.replace("CONTROLLER", controller).replace("kd: 3", f"kd: 3{trajectory}")
    rig = rig_in(tmp_path, text, own=OWN)
    return rig, (lambda: python_engine(rig)) if request.param == "Python engine" else rig.engine


def gains(rig, kp, kd):
    """(places, values) of the parameters of the controller."""
    first = rig.tick_model.layout.place("parameters").where.start
    values = np.concatenate([np.full(size, value) for value, size in zip((kp, kd), sizes(rig), strict=True)])
    return first + np.arange(len(values)), values


def sizes(rig):
    fields = rig.tick_model.loops[0].tunables.fields
    return [fields[name].stop - fields[name].start for name in ("kp", "kd")]


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


def test_a_change_in_real_time_equals_a_planned_one_to_the_bit(case):
    rig, engine = case
    made = []
    with Scheduler(engine, Pacing(overrun="skip", warm_up=0.0), rig.tasks) as scheduler:
        scheduler.prepare()
        scheduler.change(*gains(rig, 90.0, 2.5))
        scheduler.arm()
        scheduler.start(TICKS)
        for values in ((50.0, 1.0), (200.0, 6.0)):
            time.sleep(0.05)
            made.append((scheduler.change(*gains(rig, *values)), *values))
        rows = rows_of(scheduler)
    assert 0 < made[0][0] < made[1][0] < TICKS and len(rows) == TICKS
    np.testing.assert_array_equal(rows, planned(case, [(0, 90.0, 2.5), *made]))
    assert not np.array_equal(rows, planned(case, []))
    later = [(made[0][0] + 1, *made[0][1:]), made[1]]
    assert not np.array_equal(rows, planned(case, [(0, 90.0, 2.5), *later]))  # one tick would be noticed


def test_a_change_in_a_pause_is_made_before_the_next_tick(case):
    rig, engine = case
    with Scheduler(engine, Pacing(overrun="skip", warm_up=0.0), rig.tasks) as scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start(TICKS)
        time.sleep(0.05)
        scheduler.pause()
        tick = scheduler.change(*gains(rig, 50.0, 1.0))
        assert tick == scheduler.engine.number
        scheduler.resume()
        rows = rows_of(scheduler)
    np.testing.assert_array_equal(rows, planned(case, [(tick, 50.0, 1.0)]))


def test_a_change_after_the_end_is_refused(case):
    rig, engine = case
    with Scheduler(engine, Pacing(overrun="skip", warm_up=0.0), rig.tasks) as scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start(20)
        time.sleep(0.1)
        with pytest.raises(RunError, match="the run has ended"):
            scheduler.change(*gains(rig, 50.0, 1.0))
        rows_of(scheduler)
        with pytest.raises(RunError, match="cannot change a rig that is stopped"):
            scheduler.change(*gains(rig, 50.0, 1.0))
