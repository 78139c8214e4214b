"""The loops that the gains of drives close, against the step: the modes of the sampled loops of all drives together.

kp and kd act on measurements of a tick and are held for a step: with an inertia I a step T allows kd T/I < 2 and
kp T < 2 kd, less where the measurement is late or where the drive needs time to build up its effort.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core.errors import plural
from cosim.core.layout import Layout
from cosim.core.types import ACTUATOR_INPUTS, Actuator, Array, Numeric
from cosim.execution.rig_state import MAX_SIZE, ROUNDING, Cause, RigState

DEAD_BEAT = 1e-6  # amplification below which a mode is a delay
# rad/s or m/s at which a drive is linearised: the Coulomb friction of gears is constant there
MOVING = 0.2
WIDTH = 1e-4  # of the differences, in SI
# damping over stiffness that is tried, as multiples of the step, and by which factor
TIME_CONSTANTS, RATIO = (0.01, 3000.0), 1.5
BISECTIONS = 30
MAX_NAMED = 8  # joints
ABSURD = 1e-3  # factor of a gain, below which lowering it is no fix
HARSH = 0.5  # factor of a damping, below which those that were found before are lowered further first
ROOM = tuple(0.96**k for k in range(1, 60))  # factors of dampings that leave no room for stiffness
TAKES_PART = 0.3  # share of a mode, relative to its largest
TAYLOR_TERMS = 18  # rounding, for a matrix of norm 1/2


class DriveDynamics(NamedTuple):
    """A drive, linearised in u = (request, position, velocity): ż = A z + B u, effort = C z + D u."""

    A: Array
    B: Array
    C: Array
    D: Array


IDEAL = DriveDynamics(np.zeros((0, 0)), np.zeros((0, 3)), np.zeros((1, 0)), np.array([[1.0, 0.0, 0.0]]))


@dataclass(frozen=True)
class DriveLoops:
    """n drives that close a loop with their gains. dofs: (n,) of them; mobility: (n, n) accelerations per effort;
    late, differentiated: bool (n,), whether a measurement comes a step late, and whether its velocity is a difference
    of positions; kp, kd: (n,) as commanded."""

    step: float
    dofs: Array
    mobility: Array
    drives: tuple[DriveDynamics, ...]
    late: Array
    differentiated: Array
    kp: Array
    kd: Array

    def growth(self, kp: Array, kd: Array) -> tuple[float, Array, Array]:
        """(growth per step, positions (n,) and velocities (n,) of that mode) with these gains."""
        sizes, modes = np.linalg.eig(self.matrix(kp, kd))
        mode, n = modes[:, int(np.argmax(np.abs(sizes)))], len(self.dofs)
        return float(np.max(np.abs(sizes))), mode[:n], mode[n : 2 * n]

    @cached_property
    def _held(self) -> tuple[Array, Array]:
        """What a step does to (positions, velocities, states of the drives), and what the requests held in it add."""
        n, zero, one = len(self.dofs), np.zeros((len(self.dofs),) * 2), np.eye(len(self.dofs))

        def together(part: str, *columns: int) -> Array:
            parts = [getattr(drive, part) for drive in self.drives]
            return _block_diagonal([part[:, columns] if columns else part for part in parts])

        A, C, W = together("A"), together("C"), self.mobility
        B, D = ([together(part, k) for k in range(3)] for part in ("B", "D"))
        m = len(A)
        flow: Array = np.block(
            [
                [zero, one, np.zeros((n, m)), zero],
                [W @ D[1], W @ D[2], W @ C, W @ D[0]],
                [B[1], B[2], A, B[0]],
                [np.zeros((n, 3 * n + m))],
            ]
        )
        whole = exponential(self.step * flow)
        return whole[: 2 * n + m, : 2 * n + m], whole[: 2 * n + m, 2 * n + m :]

    def matrix(self, kp: Array, kd: Array) -> Array:
        """What a step does to the state of the loop: (positions, velocities, states of the drives) of this step, and
        the positions and velocities of the one before and the positions of the one before that, for encoders that
        differentiate positions or that are late."""
        drift, held = self._held
        n, m, T = len(self.dofs), len(drift) - 2 * len(self.dofs), self.step
        size = 5 * n + m
        places = np.cumsum([0, n, n, m, n, n])
        q, v, q1, v1, q2 = (np.eye(size)[places[k] : places[k] + n] for k in (0, 1, 3, 4, 5))

        def where(condition: Array, matrix: Array, other: Array) -> Array:
            return np.where(condition[:, None], matrix, other)

        position = where(self.late, q1, q)
        velocity = where(self.late, v1, v)
        differences = where(self.late, q1 - q2, q - q1) / T
        velocity = where(self.differentiated, differences, velocity)
        effort = -(kp[:, None] * position + kd[:, None] * velocity)
        return np.vstack([drift @ np.eye(size)[: 2 * n + m] + held @ effort, q, v, q1])


def _block_diagonal(parts: Sequence[Array]) -> Array:
    rows, columns = (np.cumsum([0, *(part.shape[axis] for part in parts)]) for axis in (0, 1))
    whole = np.zeros((rows[-1], columns[-1]))
    for k, part in enumerate(parts):
        whole[rows[k] : rows[k + 1], columns[k] : columns[k + 1]] = part
    return whole


def exponential(matrix: Array) -> Array:
    """e^A of A (n, n) by Taylor's series of a part of A and squaring (Moler and Van Loan, Nineteen Dubious Ways
    to Compute the Exponential of a Matrix, method 3). scipy has one too, whose import takes longer than a short run."""
    size = float(np.abs(matrix).sum(axis=1).max(initial=0.0))
    squarings = max(0, math.ceil(math.log2(size)) + 1) if 0.0 < size < math.inf else 0
    part = matrix / 2.0**squarings
    result = term = np.eye(len(matrix))
    for k in range(1, TAYLOR_TERMS):
        term = term @ part / k
        result = result + term
    for _ in range(squarings):
        result = result @ result
    return result


def closed_loops(state: RigState) -> DriveLoops | None:
    """The loops that the commanded gains close; None without any, of too many drives, and of drives whose states
    follow the accelerations of joints."""
    tick_model, plant, command = state.tick_model, state.tick_model.plant, state.parts["command"]
    kp, kd = (np.where(np.isfinite(command[gain]), command[gain], 0.0) for gain in ("kp", "kd"))
    known = np.asarray(plant.locked_or_imposed(state.state), dtype=bool)
    dofs = np.flatnonzero(~known & ((kp > 0.0) | (kd > 0.0)))
    if not len(dofs) or len(known) > MAX_SIZE or plant.inertial_drives:
        return None
    t, sensors = state.tick * tick_model.step, tick_model.encoders.params
    positions = np.asarray(plant.model.equations.chart(plant.motion(t, state.state)[0]), dtype=float)
    return DriveLoops(
        tick_model.step,
        dofs,
        plant.mobility_matrix(t, state.state)[np.ix_(dofs, dofs)],
        tuple(_linearised(plant.actuators.get(state.name(int(k))), positions[k], t) for k in dofs),
        sensors.late[dofs],
        ((sensors.resolution > 0.0) | (sensors.noise > 0.0))[dofs],
        kp[dofs],
        kd[dofs],
    )


def _linearised(actuator: Actuator | None, position: float, t: float) -> DriveDynamics:
    """A drive that moves slowly without effort, where neither its limits nor its friction act."""
    if actuator is None:
        return IDEAL
    layout = Layout(start := actuator.initial(position, MOVING))
    m = layout.size

    def flow(x: Array) -> Array:
        u: dict[str, Numeric] = dict(zip(ACTUATOR_INPUTS, x[m:], strict=True))
        rates, outputs = actuator.flow(t, actuator.params, layout.unpack(x[:m]), u)
        return np.concatenate([layout.pack(rates), [outputs["effort"]]])

    at = np.concatenate([layout.pack(start), [0.0, position, MOVING]])
    slopes = [(flow(at + WIDTH * e) - flow(at - WIDTH * e)) / (2.0 * WIDTH) for e in np.eye(len(at))]
    J = np.array(slopes, dtype=float).T
    return DriveDynamics(J[:m, :m], J[:m, m:], J[m:, :m], J[m:, m:])


def fastest_loop(state: RigState) -> tuple[str, float] | None:
    """(name of the joint, time constant [s]) of the fastest motion of the loops that the gains of drives close."""
    if (loops := closed_loops(state)) is None:
        return None
    sizes, modes = np.linalg.eig(loops.matrix(loops.kp, loops.kd))
    rates = np.where(np.abs(sizes) > DEAD_BEAT, np.abs(np.log(np.maximum(np.abs(sizes), DEAD_BEAT))), 0.0)
    fastest = int(np.argmax(rates))
    if not rates[fastest] > ROUNDING:
        return None
    joint = int(loops.dofs[int(np.argmax(np.abs(modes[: len(loops.dofs), fastest])))])
    return state.name(joint), loops.step / float(rates[fastest])


@dataclass(frozen=True)
class GainFix:
    """A gain of the drive i that is unstable: kp or kd; was: its value; raised: whether more kd is the fix."""

    i: int
    key: str
    was: float
    raised: bool = False


def unstable_gains(state: RigState) -> list[Cause]:
    """Every joint whose gains are unstable at the step, with the fix.

    The joint with the most of the fastest growing mode gets the gains at which the loops are stable, and so on.
    Dampings at the edge of stability without stiffness are lowered further where that leaves room for stiffness.
    """
    if (loops := closed_loops(state)) is None:
        return []
    kp, kd, open_ = loops.kp.copy(), loops.kd.copy(), np.ones(len(loops.dofs), dtype=bool)
    found: list[GainFix] = []
    while open_.any() and len(found) < MAX_NAMED and state.explains((grown := loops.growth(kp, kd))[0]):
        damped = loops.growth(0.0 * kp, kd)
        if not state.explains(damped[0]) and _make_room(loops, kp, kd, found):
            break
        key, gains, mode = ("kd", kd, damped[2]) if state.explains(damped[0]) else ("kp", kp, grown[1])
        i = int(np.argmax(np.where(open_, gains * np.abs(mode) ** 2, -1.0)))
        raised = None if key == "kd" else _enough_damping(loops, kp, kd, open_)
        if raised is not None:
            found.append(GainFix(i, "kp", kp[i], raised=True))
            kd[i] = max(kd[i], raised * kp[i])
        else:
            largest = _largest(lambda s, key=key: _scaled_growth(loops, kp, kd, open_, key, s))
            if key == "kd" and largest < HARSH and _make_room(loops, 0.0 * kp, kd, found):
                continue  # this joint suffered from the others
            if _is_absurd(loops, i, key, largest, largest * gains[i]):
                return [_fix_text(state, loops, fix, kp, kd) for fix in found] or [_together(state, loops, mode)]
            found.append(GainFix(i, key, gains[i]))
            gains[i] = rounded_down(largest * gains[i])
        open_[i] = False
    return [_fix_text(state, loops, fix, kp, kd) for fix in found]


def _make_room(loops: DriveLoops, kp: Array, kd: Array, found: Sequence[GainFix]) -> bool:
    """Lower the dampings that were lowered before by one more factor, so far that the loops with this stiffness do not
    grow. Whether that is possible; if not, they stay."""
    lowered = [fix.i for fix in found if fix.key == "kd"]
    if not lowered:
        return False
    for factor in ROOM:
        tried = kd.copy()
        tried[lowered] = [rounded_down(factor * kd[i]) for i in lowered]
        if loops.growth(kp, tried)[0] <= 1.0 + ROUNDING:
            kd[:] = tried
            return True
    return False


def _is_absurd(loops: DriveLoops, i: int, key: str, factor: float, gain: float) -> bool:
    """Whether a gain would be lowered to nothing: it is not what is wrong."""
    allowed = 1.0 / (loops.mobility[i, i] * loops.step ** (1 if key == "kd" else 2))
    return factor < ABSURD and gain < ABSURD * allowed


def _fix_text(state: RigState, loops: DriveLoops, fix: GainFix, kp: Array, kd: Array) -> Cause:
    """kp, kd: after all fixes."""
    i, dof = fix.i, int(loops.dofs[fix.i])
    what = "damping" if fix.key == "kd" else "stiffness"
    wrong = f"{fix.key} {state.show(fix.was, what, dof)} of joint '{state.name(dof)}'"
    if fix.raised:
        words = f"raise kd above {state.show(_rounded_up(kd[i]), 'damping', dof)}"
    else:
        words = f"lower {fix.key} to at most {state.show((kd if fix.key == 'kd' else kp)[i], what, dof)}"
    inertia = state.show(1.0 / loops.mobility[i, i], "inertia", dof)
    at = f"at a step of {state.step_ms}"
    return Cause(dof, f"{wrong} is unstable {at}: its drive sees an inertia of {inertia}; {words}")


def _together(state: RigState, loops: DriveLoops, mode: Array) -> Cause:
    """Drives whose gains no fix of one of them makes stable. mode: how each of them takes part."""
    shares = np.abs(mode) / np.abs(mode).max()
    dofs = [int(dof) for dof, share in zip(loops.dofs, shares, strict=True) if share > TAKES_PART]
    names = ", ".join(f"'{state.name(dof)}'" for dof in dofs)
    what = f"the gains of {plural(len(dofs), 'joint')} {names} are unstable at a step of {state.step_ms}"
    return Cause(dofs[0], f"{what}; lower kp and kd together, or use a smaller schedule.step")


def _scaled_growth(loops: DriveLoops, kp: Array, kd: Array, open_: Array, key: str, s: float) -> float:
    """The growth with one kind of gains of the joints that are still open scaled by s."""
    scale = np.where(open_, s, 1.0)
    return loops.growth(*((0.0 * kp, scale * kd) if key == "kd" else (scale * kp, kd)))[0]


def _enough_damping(loops: DriveLoops, kp: Array, kd: Array, open_: Array) -> float | None:
    """The smallest ratio of kd to kp of the joints that are still open whose loops do not grow; None if there is
    none."""

    def grows(ratio: float) -> bool:
        return loops.growth(kp, np.where(open_, np.maximum(kd, ratio * kp), kd))[0] > 1.0 + ROUNDING

    low, high = (loops.step * bound for bound in TIME_CONSTANTS)
    ratio = low
    while grows(ratio):
        low, ratio = ratio, ratio * RATIO
        if ratio > high:
            return None
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * ratio)
        low, ratio = (middle, ratio) if grows(middle) else (low, middle)
    return ratio


def _largest(size: Callable[[float], float]) -> float:
    """The largest factor up to 1 whose loop does not grow."""
    low, high = 1e-15, 1.0
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if size(middle) <= 1.0 + ROUNDING else (low, middle)
    return low


def rounded_down(value: float) -> float:
    """Two digits."""
    unit = _unit(value)
    return math.floor(value / unit * (1.0 + 1e-5)) * unit if unit else 0.0


def _rounded_up(value: float) -> float:
    """Two digits."""
    unit = _unit(value)
    return math.ceil(value / unit * (1.0 - 1e-5)) * unit if unit else 0.0


def _unit(value: float) -> float:
    """The place value of the second digit."""
    return 10.0 ** (math.floor(math.log10(value)) - 1) if value > 0.0 else 0.0
