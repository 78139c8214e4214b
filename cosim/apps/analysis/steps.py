"""The step of a loop: the position of a dof after a step of its reference, by feedback alone, and its figures.

The linear rig is known at its ticks. Between two of them the figures follow a straight line, and a parabola at the top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.between_ticks import crossing_after, highest
from cosim.apps.analysis.circle import SampledSystem, system_of
from cosim.apps.analysis.frequency import poles
from cosim.apps.analysis.linearisation import LinearRig
from cosim.core.types import Array

STILL = 1e-9  # final value of a position that does not follow
SETTLED_FRACTION = 0.02  # of the final value
RISE_BEGIN, RISE_END = 0.1, 0.9  # of the final value
LONGEST_RESPONSE = 20_000  # ticks of a step response without a pole that decays
DRAWN_POINTS = 2_048  # points of a drawn response between two doublings of their distance
READ_POINTS = 2**18  # of one whose figures are read: the distance stays below 1e-5 of the time
BLOCK = 2_048  # points that are computed at once
DECAY_TIMES = 20.0  # time constants after which a part of a step response is over, to 2e-9
SLOWEST_DECAY = 1e-6  # 1/s; a slower decay is an integral


@dataclass(frozen=True)
class StepFigures:
    """Of a step of 1 of the reference that feedback alone follows: rise_time (10 to 90 %), settling_time (2 %) [s],
    overshoot as a fraction of the final value, steady_state_error."""

    rise_time: float
    settling_time: float
    overshoot: float
    steady_state_error: float


def tracking_of(rig: LinearRig, dof: int) -> SampledSystem:
    """Position of a dof per reference as far as feedback alone follows it."""
    row = len(rig.dofs) + dof
    return system_of(rig.A, -rig.B[:, [row]], rig.C[[row]], -rig.D[row : row + 1, row : row + 1])


def step_response(rig: LinearRig, dof: int, points: int = DRAWN_POINTS) -> tuple[Array, Array]:
    """(times (k,) [s], position (k,) of a dof) after a step of 1 of its reference that feedback alone follows, until
    the slowest mode has decayed: of so many points at every tick first, then at every second, fourth …"""
    system, end = tracking_of(rig, dof), _ticks_to_settle(rig)
    n = len(system.A)
    move = np.block([[system.A, system.B], [np.zeros((1, n)), np.ones((1, 1))]])  # of the state and the step
    output, x = np.hstack([system.C, system.D]), np.append(np.zeros(n), 1.0)
    ticks, found = list[Array](), list[Array]()
    tick, distance = 0, 1
    while tick < end:
        block = min(points, BLOCK)
        rows, power = output, move
        while len(rows) < block:
            rows, power = np.vstack([rows, rows @ power]), power @ power
        for _ in range(points // block):
            if tick >= end:
                break
            ticks.append(tick + distance * np.arange(block))
            found.append(rows @ x)
            tick, x = tick + distance * block, power @ x
        move, distance = move @ move, 2 * distance
    return np.concatenate(ticks) * rig.step, np.concatenate(found)


def step_figures(times: Array, response: Array) -> StepFigures:
    """Of a step response (k,) that ends at rest."""
    final = float(response[-1])
    if abs(final) < STILL:
        return StepFigures(math.nan, math.nan, math.nan, 1.0 - final)
    relative = response / final
    rise = _first_time(times, relative - RISE_END) - _first_time(times, relative - RISE_BEGIN)
    return StepFigures(rise, _settling_time(times, relative), max(0.0, highest(relative) - 1.0), 1.0 - final)


def _first_time(times: Array, value: Array) -> float:
    """[s] at which a value (k,) is 0 or above it first."""
    k = int(np.argmax(value >= 0.0))
    return float(times[0]) if k == 0 else _time(times, value, k - 1)


def _settling_time(times: Array, relative: Array) -> float:
    """[s] from which on the response stays within its band."""
    beyond = np.abs(relative - 1.0) - SETTLED_FRACTION
    outside = np.flatnonzero(beyond > 0.0)
    return _time(times, beyond, int(outside[-1])) if len(outside) else 0.0


def _time(times: Array, value: Array, k: int) -> float:
    """[s] at which a value (k,) crosses 0 between a sample and the next one."""
    part = float(crossing_after(value, np.array([k]))[0]) - k
    return float(times[k] + part * (times[k + 1] - times[k]))


def _ticks_to_settle(rig: LinearRig) -> int:
    """Of the slowest pole that is no integral."""
    decays = -np.real(poles(rig))
    slowest = float(np.min(decays[decays > SLOWEST_DECAY], initial=math.inf))
    return math.ceil(DECAY_TIMES / slowest / rig.step) if math.isfinite(slowest) else LONGEST_RESPONSE
