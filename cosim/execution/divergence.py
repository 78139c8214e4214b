"""The likely cause of a run that diverged or left its limits, found after the stop from the memory and the last rows.

Causes in order of precedence: gains of a drive that are unstable at the step, a plant too stiff for the integrator, a
reference beyond the limits of its joint, a drive that was saturated. The loop itself computes nothing of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import expm

from cosim.control.bumpless_start import BumplessStart
from cosim.control.control_loop import ControlLoop
from cosim.control.limits import BITS, LIMIT_OF, SATURATE
from cosim.plant.integrators import INTEGRATORS
from cosim.plant.ode_system import System
from cosim.tick.tick_model import TickModel
from cosim.types import Array, State
from cosim.units import JOINT_DIMENSIONS

# an unstable mode is the cause if it had the time to grow by this factor; a run that stops at once gets these ticks
GROWTH, FIRST_TICKS = 2.0, 10
# by which an amplification of 1 may be exceeded: rounding of the double eigenvalues of free motion
ROUNDING = 1e-6
DEAD_BEAT = 1e-6  # amplification below which a mode is a delay
# s and ticks before the stop, the longer time, in which saturation and references are looked at
WINDOW, MIN_TICKS = 0.1, 20
MAX_SAMPLES = 50  # ticks of the window that are looked at
# fraction of the window from which on saturation is the cause
OFTEN = 0.5
# states and controlled dofs of a rig, above which the eigenvalues take too long
MAX_SIZE = 100
# rad, m or per s: a larger state says nothing about inertia
PLAUSIBLE = 1e6


@dataclass(frozen=True)
class PostMortem:
    """A stopped rig. tick: at whose end it has a fault; parts: its memory then; rows (k, nr): the ticks up to it;
    joint: of the fault, its index, -1: of none in particular."""

    tick_model: TickModel
    tick: int
    parts: State
    rows: Array
    joint: int

    def explains(self, growth: float) -> bool:
        """Whether a mode with this growth per tick explains the divergence since arming."""
        ticks = self.tick - round(float(self.parts["bumpless_start"][0]) / self.tick_model.step)
        return growth > 1.0 + ROUNDING and max(ticks, FIRST_TICKS) * math.log(growth) > math.log(GROWTH)

    @cached_property
    def followed(self) -> tuple[ControlLoop, int] | None:
        """The loop that follows a position of the joint, and the place of the joint in it."""
        loops = [loop for loop in self.tick_model.loops if loop.needs_reference("position")]
        places = [(loop, int(i)) for loop in loops for i in np.flatnonzero(loop.index == self.joint)]
        return places[0] if places else None

    @property
    def step_ms(self) -> str:
        return f"{self.tick_model.step * 1e3:g} ms"

    def name(self, k: int) -> str:
        return self.tick_model.plant.model.dof_names[k]

    def show(self, value: float, what: str, k: int) -> str:
        """A number of joint k with the unit of `joint <what>`."""
        units = JOINT_DIMENSIONS[f"joint {what}"]
        return f"{float(f'{value:.3g}'):.6g} {units[self.tick_model.plant.model.dof_units[k] == 'm']}"

    @cached_property
    def window(self) -> list[State]:
        """Some of the last rows, unpacked."""
        count = max(round(WINDOW / self.tick_model.step), MIN_TICKS)
        rows = self.rows[-count:]
        return [self.tick_model.row.unpack(row) for row in rows[:: -(-len(rows) // MAX_SAMPLES) or 1]]

    @cached_property
    def state(self) -> State:
        """The last plausible state of the plant, else the initial one."""
        layout = self.tick_model.plant.layout
        for state in (self.parts["plant"], *(row["plant"] for row in reversed(self.window))):
            if np.all(
                np.abs(layout.pack({**state, "energy": dict.fromkeys(state["energy"], np.zeros(()))})) < PLAUSIBLE
            ):
                return state
        return self.tick_model.plant.initial()


def likely_cause(stop: PostMortem) -> str:
    """What is wrong, and the fix; empty where nothing is found."""
    causes: tuple[Callable[[PostMortem], str], ...] = (_unstable_gains, _stiff_plant, _reference_too_far, _saturated)
    with np.errstate(all="ignore"):
        for find in causes:
            # the state is that of a failed run, and trajectories may be a user's: the stop reason comes in any case
            with suppress(Exception):
                if cause := find(stop):
                    return cause
    return ""


def predicted(tick_model: TickModel, parts: State, ticks: int) -> PostMortem:
    """A rig after its first tick as if it had stopped after so many `ticks`; parts: its memory."""
    start = np.array(parts["bumpless_start"], dtype=float)
    start[0] = -ticks * tick_model.step
    rows = np.zeros((0, tick_model.row.size))
    return PostMortem(tick_model, 0, {**parts, "bumpless_start": start}, rows, -1)


def instability(stop: PostMortem) -> str:
    """Gains that are unstable at the step, or a plant that is too stiff for it, and the fix; empty where neither is."""
    with np.errstate(all="ignore"):
        return _unstable_gains(stop) or _stiff_plant(stop)


# --- gains of a drive against the step ---


def fastest_loop(stop: PostMortem) -> tuple[str, float] | None:
    """(name of the joint, time constant [s]) of the fastest motion of the loops that the gains of drives close."""
    found = _closed_drives(stop)
    if found is None:
        return None
    drives, mobility, kp, kd = found
    sizes, modes = np.linalg.eig(_sampled_matrix(stop.tick_model, drives, mobility, kp, kd))
    rates = np.where(np.abs(sizes) > DEAD_BEAT, np.abs(np.log(np.maximum(np.abs(sizes), DEAD_BEAT))), 0.0)
    fastest = int(np.argmax(rates))
    if not rates[fastest] > ROUNDING:
        return None
    joint = int(drives[int(np.argmax(np.abs(modes[: len(drives), fastest])))])
    return stop.name(joint), stop.tick_model.step / float(rates[fastest])


def fastest_plant(stop: PostMortem) -> tuple[str, float] | None:
    """(the part, time constant [s]) of the fastest motion of the linearised plant."""
    found = _linearised(stop)
    if found is None:
        return None
    A, moving = found
    rates, modes = np.linalg.eig(A)
    fastest = int(np.argmax(np.abs(rates)))
    if not abs(rates[fastest]) > ROUNDING:
        return None
    return _part_of(stop, moving[int(np.argmax(np.abs(modes[:, fastest])))]), 1.0 / float(abs(rates[fastest]))


def _closed_drives(stop: PostMortem) -> tuple[Array, Array, Array, Array] | None:
    """(dofs, mobility, kp, kd) of the drives that close a loop with their gains; None without any, or of too many."""
    plant, command = stop.tick_model.plant, stop.parts["command"]
    kp, kd = (np.where(np.isfinite(command[gain]), command[gain], 0.0) for gain in ("kp", "kd"))
    known = np.asarray(plant.locked_or_imposed(stop.state), dtype=bool)
    drives = np.flatnonzero(~known & ((kp > 0.0) | (kd > 0.0)))
    if not len(drives) or len(known) > MAX_SIZE:
        return None
    mobility = plant.mobility_matrix(stop.tick * stop.tick_model.step, stop.state)[np.ix_(drives, drives)]
    return drives, mobility, kp[drives], kd[drives]


def _unstable_gains(stop: PostMortem) -> str:
    """kp and kd act on measurements of the tick and are held for a step: with an inertia I a step T allows kd T/I < 2
    and kp T < 2 kd, less where the measurement is late. The modes of all drives are looked at together."""
    if (found := _closed_drives(stop)) is None:
        return ""
    drives, mobility, kp, kd = found

    def unstable(kp: Array, kd: Array) -> tuple[bool, tuple[Array, Array]]:
        size, mode = _sampled_loop(stop.tick_model, drives, mobility, kp, kd)
        return stop.explains(size), mode

    if (grows := unstable(np.zeros(len(kp)), kd))[0]:
        key, what, gains, mode = "kd", "damping", kd, grows[1][1]
    elif (grows := unstable(kp, kd))[0]:
        key, what, gains, mode = "kp", "stiffness", kp, grows[1][0]
    else:
        return ""
    i = int(np.argmax(gains * np.abs(mode) ** 2))
    if key == "kd":
        largest = _largest(lambda s: _sampled_loop(stop.tick_model, drives, mobility, 0.0 * kp, s * kd)[0])
    else:
        largest = _largest(lambda s: _sampled_loop(stop.tick_model, drives, mobility, s * kp, kd)[0])
    k, inertia = int(drives[i]), 1.0 / mobility[i, i]
    wrong = f"{key} {stop.show(gains[i], what, k)} of joint '{stop.name(k)}' is unstable at a step of {stop.step_ms}"
    seen = f"its drive sees an inertia of {stop.show(inertia, 'inertia', k)}"
    fix = f"lower {key} to at most {stop.show(_rounded_down(largest * gains[i]), what, k)}"
    # a command that is held for a step takes effect half a step late on average
    delay = (0.5 + bool(stop.tick_model.encoders.params.late[k])) * stop.tick_model.step
    if key == "kp" and delay * kp[i] < inertia / stop.tick_model.step:
        fix = f"raise kd above {stop.show(delay * kp[i], 'damping', k)}"
    return f"{wrong}: {seen}; {fix}"


def _sampled_loop(
    tick_model: TickModel, drives: Array, mobility: Array, kp: Array, kd: Array
) -> tuple[float, tuple[Array, Array]]:
    """(growth per step, the (positions, velocities) of that mode) of the loop that the gains of n drives close."""
    sizes, modes = np.linalg.eig(_sampled_matrix(tick_model, drives, mobility, kp, kd))
    mode, n = modes[:, int(np.argmax(np.abs(sizes)))], len(drives)
    return float(np.max(np.abs(sizes))), (mode[:n], mode[n : 2 * n])


def _sampled_matrix(tick_model: TickModel, drives: Array, mobility: Array, kp: Array, kd: Array) -> Array:
    """(5 n, 5 n): what a step does to the state of the loop that the gains of n drives close.

    mobility: (n, n) accelerations per effort. The state has the positions and velocities of this step and of the one
    before, and the positions of the one before that, for encoders that differentiate positions or that are late.
    """
    n, T, sensors = len(drives), tick_model.step, tick_model.encoders.params
    late, zero, one = sensors.late[drives], np.zeros((n, n)), np.eye(n)
    inexact = (sensors.resolution[drives] > 0.0) | (sensors.noise[drives] > 0.0)
    plain = expm(T * np.block([[zero, one, zero], [zero, zero, mobility], [zero, zero, zero]]))
    drift, held = plain[: 2 * n, : 2 * n], plain[: 2 * n, 2 * n :]

    def where(condition: Array, matrix: Array) -> Array:
        return condition[:, None] * matrix

    q, v, q1, v1, q2 = (np.hstack([one if i == k else zero for i in range(5)]) for k in range(5))
    position = where(~late, q) + where(late, q1)
    velocity = where(~late & ~inexact, v) + where(late & ~inexact, v1)
    velocity = velocity + where(~late & inexact, (q - q1) / T) + where(late & inexact, (q1 - q2) / T)
    effort = -(kp[:, None] * position + kd[:, None] * velocity)
    return np.vstack([drift @ np.vstack([q, v]) + held @ effort, q, v, q1])


def _largest(size: Callable[[float], float]) -> float:
    """The largest factor up to 1 whose loop does not grow."""
    low, high = 1e-15, 1.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if size(middle) <= 1.0 + ROUNDING else (low, middle)
    return low


def _rounded_down(value: float) -> float:
    """Two digits."""
    if not value > 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / unit * (1.0 + 1e-5)) * unit


# --- the plant against the integrator ---


def _stiff_plant(stop: PostMortem) -> str:
    """The fastest motion of the linearised plant that the integrator amplifies although it decays."""
    if (found := _linearised(stop)) is None:
        return ""
    tick_model, plant, (A, moving) = stop.tick_model, stop.tick_model.plant, found
    coordinates = np.flatnonzero(np.isin(moving, plant.coordinates))
    rates, modes = np.linalg.eig(A)

    def growth(substeps: int) -> float:
        """Per tick, beyond that of the motion itself."""
        h = tick_model.step / substeps
        own = math.exp(min(tick_model.step * max(0.0, float(np.real(rates).max())), 700.0))
        largest = np.max(np.abs(np.linalg.eigvals(_one_step(tick_model.integrator, A, coordinates, h))))
        return float(largest) ** substeps / own

    if not stop.explains(growth(tick_model.substeps)):
        return ""
    fastest = int(np.argmax(np.abs(rates)))
    part = _part_of(stop, moving[int(np.argmax(np.abs(modes[:, fastest])))])
    needed = tick_model.substeps
    while growth(needed) > 1.0 + ROUNDING and needed < 1 << 16:
        needed *= 2
    substeps = "" if tick_model.substeps == 1 else f" in {tick_model.substeps} substeps"
    wrong = f"{part} has a time constant of {1e6 / abs(rates[fastest]):.3g} us, too short for a step of {stop.step_ms}"
    fix = f"use schedule.substeps: {needed} or schedule.integrator: rosenbrock"
    return f"{wrong}{substeps} with {tick_model.integrator}; {fix}"


def _linearised(stop: PostMortem) -> tuple[Array, list[int]] | None:
    """(∂f/∂x (n, n) of the plant, the indices (n,) of x in its flat state); None for a plant that is too large."""
    tick_model, plant = stop.tick_model, stop.tick_model.plant
    if plant.layout.size > MAX_SIZE:
        return None
    t, x = stop.tick * tick_model.step, plant.layout.pack(stop.state)
    moving = [
        i
        for path, (where, _) in plant.layout.places.items()
        if path[0] in ("position", "velocity", "actuators")
        for i in range(where.start, where.stop)
    ]
    request = stop.window[-1]["request"] if stop.window else np.zeros(tick_model.nv)
    request = np.where(np.isfinite(request), request, 0.0)
    at = np.asarray(tick_model.integration.flow(t, x, request), dtype=float)[moving]
    A = np.zeros((len(moving), len(moving)))
    for j, i in enumerate(moving):
        change = x.copy()
        change[i] += (width := 1e-6 * max(1.0, abs(x[i])))
        A[:, j] = (np.asarray(tick_model.integration.flow(t, change, request), dtype=float)[moving] - at) / width
    if not np.isfinite(A).all():
        return None
    return A, moving


def _one_step(integrator: str, A: Array, coordinates: Array, h: float) -> Array:
    """P (n, n): x(t + h) = P x(t) by the integrator for ẋ = A x."""
    zero = np.zeros(len(A))
    system = System(lambda t, x: A @ x, coordinates, lambda t, x: (A @ x)[coordinates], lambda t, x, rate: (A, zero))
    return np.column_stack(
        [np.asarray(INTEGRATORS[integrator].step(system, 0.0, e, h)[0], dtype=float) for e in np.eye(len(A))]
    )


def _part_of(stop: PostMortem, index: int) -> str:
    """What the element `index` of the flat state of the plant belongs to."""
    plant = stop.tick_model.plant
    for name in plant.actuators:
        state = plant.layout.place("actuators", name).where
        if state.start <= index < state.stop:
            return f"the drive of joint '{name}'"
    velocity = plant.layout.place("velocity").where
    if velocity.start <= index < velocity.stop:
        return f"joint '{stop.name(int(np.flatnonzero(plant.unprescribed)[index - velocity.start]))}'"
    coordinate = plant.layout.place("position").where
    return f"joint '{plant.state_coordinate_names[index - coordinate.start]}'"


# --- references and saturation ---


def _reference_too_far(stop: PostMortem) -> str:
    """Whether the reference of the joint is beyond its limits of velocity or position, shortly before or after."""
    if stop.followed is None:
        return ""
    k, limits = stop.joint, stop.tick_model.limits
    loop, i = stop.followed
    armed = BumplessStart.of(stop.parts["bumpless_start"], stop.tick_model.nv)
    end, bounds = stop.tick * stop.tick_model.step, f"joints.{stop.name(k)}.limits"
    for t in np.linspace(max(float(armed.t), end - WINDOW), end + WINDOW, MAX_SAMPLES):
        sample = armed.at(loop.index).reference(loop.trajectory, float(t))
        position, velocity = float(sample["position"][i]), float(sample["velocity"][i])
        if abs(velocity) > limits.velocity[k]:
            what = f"its reference moves at {stop.show(velocity, 'velocity', k)} at t = {t:.3g} s"
            return f"{what}; slow the trajectory down or change {bounds}"
        if not limits.lower[k] <= position <= limits.upper[k]:
            what = f"its reference is at {stop.show(position, 'position', k)} at t = {t:.3g} s"
            return f"{what}; change the trajectory or {bounds}"
    return ""


def _saturated(stop: PostMortem) -> str:
    """Whether the effort of a joint that follows a position was at its limit most of the time: of the guard, or of the
    drive."""
    k, guard = stop.joint, stop.tick_model.guard
    if stop.followed is None or not stop.window:
        return ""
    cut = np.mean([_is_cut(stop, row) for row in stop.window])
    stuck = np.mean([_is_stuck(stop, row) for row in stop.window])
    if max(cut, stuck) < OFTEN:
        return ""
    span = min(len(stop.rows), max(round(WINDOW / stop.tick_model.step), MIN_TICKS)) * stop.tick_model.step
    limit = f" of {LIMIT_OF['effort'].show([guard.bounds['effort'][k]], stop.tick_model.plant.model.dof_units[k])}"
    what = (
        f"its effort was at its limit{limit if cut >= stuck else ''} in {max(cut, stuck):.0%} of the last {span:.3g} s"
    )
    fix = "slow the trajectory down, reduce the load, or " + (
        f"raise joints.{stop.name(k)}.limits" if cut >= stuck else f"use a stronger joints.{stop.name(k)}.actuator"
    )
    return f"{what}; {fix}"


def _is_cut(stop: PostMortem, row: State) -> bool:
    """Whether the guard cut the effort of the joint to its limit."""
    guard, k = stop.tick_model.guard, stop.joint
    return bool(guard.has_action(SATURATE, "effort")[k] and int(row["warned"][k]) & int(BITS["effort"]))


def _is_stuck(stop: PostMortem, row: State) -> bool:
    """Whether the drive of the joint gives no more when more is requested."""
    plant, k = stop.tick_model.plant, stop.joint
    actuator, request = plant.actuators.get(stop.name(k)), float(row["request"][k])
    if actuator is None or not request or not np.isfinite(request):
        return False
    t, x = float(row["t"]), row["plant"]
    q, v, _ = plant.motion(t, x)
    inputs = {"position": plant.model.equations.chart(q)[k], "velocity": v[k]}
    answers = [
        [np.ravel(list(part.values())) for part in actuator.flow(t, actuator.params, x["actuators"][stop.name(k)], u)]
        for u in ({**inputs, "request": request}, {**inputs, "request": 1.01 * request})
    ]
    return all(np.array_equal(a, b) for a, b in zip(*answers, strict=True))
