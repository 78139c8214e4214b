"""A rig with every kind of state, and runs of it."""

import numpy as np

from cosim.execution.native_engine import NativeEngine
from tests.kit.engines import python_engine
from tests.kit.rigs import controller

# every kind of state: counts, noise, delay, an elastic gear, a latch, periods and phases, a fallback
STATEFUL = """
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: c, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  a:
    encoder: {cpr: 20000, noise: 0.0001, delay: 1}
    actuator: {type: dc_motor, resistance: 0.8, inductance: 1 mH, torque_constant: 0.05, rotor_inertia: 2e-5, ratio: 20,
               stiffness: 400, damping: 0.5}
  b: {encoder: {noise: 0.0001}}
controllers:
  - {name: first, type: pid, joints: [a], kp: 40, ki: 20, kd: 2, period: 3 ms, phase: 1 ms,
     trajectory: {type: sine, amplitude: 0.3, frequency: 3 Hz}}
  - {name: second, type: failing.py, joints: [b], period: 2 ms,
     fallback: {type: pid, kp: 40, ki: 10, kd: 2}}
  - {name: third, type: pd_gravity, joints: [c], kp: 20, kd: 2}
events:
  - {do: latch, of: c, at: 15 ms, name: lock}
  - {do: unlatch, of: c, at: 70 ms}
"""
# no number from 20 ms on
FAILING = controller("""alive = ops.where(t < 0.02, 1.0, 0.0)
effort = alive * (2.0 - q) / alive""").replace('"n": n + 1.0', '"n": n + effort')
# two actuated links whose controllers carry the weight
ARM = """
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 2 kg, com: [0, 0, -0.4], inertia: [0.1, 0.1, 0.1]}
    - {name: b, origin: {xyz: [0, 0, -0.8]}, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.3], inertia: [0.1, 0.1, 0.1]}
joints: {all: {limits: {velocity: 50}}}
controllers:
  - {name: arm, type: pid, kp: [400, 150], ki: [100, 50], kd: [40, 12],
     trajectory: {type: quintic, goal: [0.6, -0.4], duration: 0.4}}
schedule: {blend: 0.2}
"""
ENGINES = ("machine code", "Python")


def engine_of(rig, kind, hardware=False):
    if kind == "machine code":
        return NativeEngine(rig.tick_model)
    return python_engine(rig, hardware=hardware)


def started(scheduler, ticks=10**6):
    scheduler.arm()
    scheduler.start(ticks)
    return scheduler


def read_blocks(scheduler, at_least=10**9):
    """(numbers, rows, signals) of the blocks that follow, with at least this many ticks."""
    blocks, found = [], 0
    while found < at_least and (block := scheduler.read()) is not None:
        blocks.append(block)
        found += len(block.numbers)
    return blocks


def rows_of(blocks):
    return np.concatenate([block.rows for block in blocks])


def numbers_of(blocks):
    return np.concatenate([block.numbers for block in blocks]).tolist()


def signals_of(rig, blocks):
    """Signal -> its values (k,)."""
    values = np.concatenate([rig.observe(block.bumpless_start, block.rows) for block in blocks])
    return dict(zip(rig.tick_model.signals.names, values.T, strict=True))
