"""Shared by the tests of scheduler."""

import copy

import numpy as np

from cosim.execution.native_engine import NativeEngine
from cosim.execution.scheduler import Scheduler, SchedulerState
from cosim.simulation.loop.pacing import Pacing
from tests.kit.clock import FakeClock
from tests.kit.drivers import LoggedDriver
from tests.kit.engines import python_engine

MS = 1_000_000  # ns


# a chain of three links: two are actuated, the last one is prescribed
RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: c, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
joints:
  all: {limits: {velocity: 20}}
  a: {initial: {position: 0.2}}
  c: {prescribed: {type: sine, amplitude: 0.1, frequency: 1 Hz}}
controllers:
  - {name: first, type: push.py, joints: [a]}
  - {name: second, type: push.py, joints: [b]}
"""


# all of it in machine code; the joint leaves its limits
NATIVE = """
mechanism:
  bodies: [{name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}]
joints: {a: {limits: {upper: 0.3}, encoder: {cpr: 10000}}}
controllers:
  - {name: hold, type: pid, kp: 40, ki: 20, kd: 4, period: 3 ms,
     trajectory: {type: sine, amplitude: 20 deg, frequency: 3 Hz}}
"""
# `float` keeps it in Python
PUSH = """
import numpy as np
from cosim.plugin import COMMAND, FEEDBACK, joint_signals, param, params


@params
class Params:
    size: float = param(default=3.0)

class Push:
    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals(FEEDBACK, 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {"n": np.zeros(1)}

    def update(self, t, p, x, u):
        effort = np.array([p.size * (0.3 - float(u["position"][0])) - 0.5 * float(u["velocity"][0])])
        rest = np.zeros(1)
        return {"n": x["n"] + 1}, {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}

def load(params, context):
    return Push(params, context)
"""


class Bench:
    """A rig's scheduler, around logged drivers in Python or in machine code, as fast as possible or by a fake clock."""

    def __init__(self, rig, paced=False, hardware=False, native=False, groups=((0,), (1, 2)), **pacing):
        self.rig, self.hardware, self.native, self.groups = rig, hardware, native, groups
        self.log, self.drivers, self.clock = [], [], FakeClock(reading=1000)
        self.scheduler = Scheduler(
            self.engine, Pacing(**pacing) if paced else None, rig.tasks, 0.05, "rig.yaml:1", self.clock
        )

    def engine(self):
        rig = self.rig
        if self.native:
            return NativeEngine(rig.tick_model)

        def logged(driver):
            self.drivers.append(LoggedDriver(driver, self.log))
            return self.drivers[-1]

        return python_engine(rig, *self.groups, wrap=logged, hardware=self.hardware)

    def start(self, ticks):
        """The scheduler, running; from `configured`, if need be."""
        if self.scheduler.state is SchedulerState.CONFIGURED:
            self.scheduler.prepare()
        self.scheduler.arm()
        self.scheduler.start(ticks)
        return self.scheduler


class Ticks:
    """What a scheduler leaves from now on, block by block."""

    def __init__(self, scheduler, at_least=None):
        self.blocks, found = [], 0
        while (at_least is None or found < at_least) and (block := scheduler.read()) is not None:
            self.blocks.append(block)
            found += len(block.numbers)

    numbers = property(lambda self: [int(number) for block in self.blocks for number in block.numbers])
    rows = property(lambda self: np.concatenate([block.rows for block in self.blocks]))

    def __add__(self, other):
        both = copy.copy(self)
        both.blocks = self.blocks + other.blocks
        return both

    def signals(self, rig):
        """Signal -> its values (k,)."""
        values = np.concatenate([rig.observe(block.bumpless_start, block.rows) for block in self.blocks])
        return dict(zip(rig.tick_model.signals.names, values.T, strict=True))


def failing(error):
    def fail(*_):
        raise error

    return fail
