"""Direction, ratio and zero of a joint from marks, and its cogging from slow motions in both directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cosim.apps.commissioning.motion import HoldingLoop, expected
from cosim.apps.commissioning.session import CommissioningSession, MotionBounds
from cosim.control.cogging import Cogging
from cosim.core.errors import RunError
from cosim.core.units import TURN
from cosim.rig.reading.driver_family import JointWiring

RUN_IN = 0.1  # of a motion, at its begin, that is not used
POINTS = 60  # at which the model's gravity is computed over the motion
MARGIN, FACTOR = 0.05, 5.0  # of the velocity limit, and times the speed: where the guard stops
DIGITS = 4  # of a harmonic


class WiringFit(NamedTuple):
    """What marks say of the wiring; residual: largest distance of a mark from the line [rad or m]."""

    direction: int
    ratio: float
    zero: float
    residual: float


def fit_marks(wiring: JointWiring, marks: Sequence[float], measured: Sequence[float]) -> WiringFit:
    """The wiring with which the joint is at the marks where it was measured at these positions with the present one:
    of one mark its zero, of two or more the line of least squares. Raises RunError for marks that give no line."""
    scale = wiring.direction * wiring.ratio
    drive = scale * (np.asarray(measured, dtype=float) - wiring.zero)
    at = np.asarray(marks, dtype=float)
    if len(at) == 1:
        return WiringFit(wiring.direction, wiring.ratio, float(at[0] - drive[0] / scale), 0.0)
    spread = at - at.mean()
    if not np.any(np.abs(spread) > 1e-9):
        raise RunError("the marks are all at the same position; give others")
    slope = float(spread @ (drive - drive.mean()) / (spread @ spread))
    if abs(slope) < 1e-9:
        raise RunError("the drive did not move between the marks; check its encoder and its coupling")
    zero = float(at.mean() - drive.mean() / slope)
    residual = float(np.max(np.abs(drive / slope + zero - at)))
    return WiringFit(1 if slope > 0.0 else -1, abs(slope), zero, residual)


class CoggingPlan(NamedTuple):
    """SI. travel: of each motion, from the present position upwards and back; effort: fraction of the limit; order: of
    the highest harmonic; period: of the joint."""

    speed: float
    travel: float
    effort: float
    order: int
    period: float


class CoggingFit(NamedTuple):
    """The cogging and the dry friction of a joint, fitted to slow motions in both directions. friction: the dry one at
    this speed; residual: what the harmonics do not explain, root mean square."""

    cogging: Cogging
    friction: float
    residual: float


def measure_cogging(
    session: CommissioningSession, name: str, plan: CoggingPlan, abort: Callable[[], str] = lambda: ""
) -> CoggingFit:
    """Move a joint slowly up and down; its motor is off afterwards, all others stay off. Raises RunError."""
    k = session.rig.joints.index(name)
    positions = session.check()
    expect = expected(session.rig, positions)
    fastest, strongest = float(session.rig.limits.velocity[k]), float(session.rig.limits.effort[k])
    bounds = MotionBounds(plan.effort * strongest, FACTOR * plan.speed + MARGIN * fastest, 1.2 * plan.travel)
    rows: list[tuple[float, float, int]] = []
    with session.live([name], bounds, "effort", abort) as live:
        loop = HoldingLoop(live, "effort", expect)
        for sign in (1, -1):
            begun = live.t
            while (passed := (live.t - begun) * plan.speed) < plan.travel:
                live.read()
                loop.follow([sign * plan.speed])
                if passed > RUN_IN * plan.travel:
                    rows.append((float(live.position[0]), float(live.request[0]), sign))
    q, effort, sign = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if np.ptp(q) < plan.period:
        what = (
            f"joint '{name}' has moved by {np.ptp(q):.3g} {session.unit(name)}, less than a period of {plan.period:.3g}"
        )
        raise RunError(f"{what}; raise --travel or --effort")
    grid = np.linspace(q.min(), q.max(), POINTS)
    gravity = [expected(session.rig, {**positions, name: float(at)})[name].gravity for at in grid]
    return fit_cogging(q, effort - np.interp(q, grid, gravity), sign, plan)


def fit_cogging(position: np.ndarray, effort: np.ndarray, sign: np.ndarray, plan: CoggingPlan) -> CoggingFit:
    """The harmonics of efforts (k,) at positions (k,), besides a constant, and friction against the direction of the
    motion, by least squares."""
    orders = np.arange(1, plan.order + 1)
    phase = np.outer(TURN / plan.period * position, orders)
    table = np.hstack([np.ones((len(sign), 1)), sign[:, None], np.cos(phase), np.sin(phase)])
    found = np.linalg.lstsq(table, effort, rcond=None)[0]
    residual = float(np.sqrt(np.mean((table @ found - effort) ** 2)))
    cosine, sine = (tuple(map(_rounded, part.tolist())) for part in np.split(found[2:], 2))
    return CoggingFit(Cogging(period=plan.period, cosine=cosine, sine=sine), float(found[1]), residual)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else 0.0
