"""The loops that simulated drives close themselves, velocity and position, before a run: whether they are stable.

All such drives together, between samples by the exponential of their linearised equations, at samples by the derivative
of what their loops compute: the product over the time after which all samples repeat has an eigenvalue beyond 1 where
they are not (Bittanti and Colaneri, Periodic Systems, 2009, §3). The loops are taken at rest and within their limits,
encoders without their counts.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.layout import Layout
from cosim.core.types import SETPOINTS, Array
from cosim.execution.drive_loops import BISECTIONS, MOVING, exponential, rounded_down
from cosim.execution.rig_state import MAX_SIZE, Cause, RigState

WIDTH = 1e-6  # of the differences, in SI
LEAST_GROWTH = 1e-4  # of a hyper-period: double eigenvalues of free motion are found to the root of a difference
MOST_SAMPLES = 2000  # of all drives in a hyper-period
# of a gain: below the first lowering it is no fix; by the second it is lowered until the loops are stable
LEAST_FACTOR, SMALLER = 1e-3, 0.8


class SampledLoop(NamedTuple):
    """A drive: z = (states, position, velocity) of its joint. A: (m + 1, m + 2) rates of the states, and the effort;
    samples: of each number of a sample (m, m + 2), without its own velocity or position loop too, by the key of what
    is missing; period [s]."""

    dof: int
    A: Array
    samples: tuple[Mapping[str, Array], ...]
    period: Fraction


@dataclass(frozen=True)
class SampledDrives:
    """n drives of the rig. mobility: (n, n) accelerations per effort; viscous: (n,) friction per velocity."""

    drives: tuple[SampledLoop, ...]
    mobility: Array
    viscous: Array

    @cached_property
    def hyper_period(self) -> Fraction:
        spans = [drive.period * len(drive.samples) for drive in self.drives]
        denominator = math.lcm(*(span.denominator for span in spans))
        return Fraction(math.lcm(*(int(span * denominator) for span in spans)), denominator)

    @property
    def count(self) -> int:
        return sum(int(self.hyper_period / drive.period) for drive in self.drives)

    @cached_property
    def _places(self) -> list[Array]:
        """Of each drive: where its states, position and velocity are in z = (positions, velocities, states …)."""
        n, begin, found = len(self.drives), 2 * len(self.drives), []
        for k, drive in enumerate(self.drives):
            m = len(drive.A) - 1
            found.append(np.array([*range(begin, begin + m), k, n + k]))
            begin += m
        return found

    @cached_property
    def _flow(self) -> Array:
        """ż = F z between samples."""
        n, size = len(self.drives), 2 * len(self.drives) + sum(len(drive.A) - 1 for drive in self.drives)
        F, efforts = np.zeros((size, size)), np.zeros((n, size))
        for k, (drive, places) in enumerate(zip(self.drives, self._places, strict=True)):
            F[np.ix_(places[:-2], places)] = drive.A[:-1]
            efforts[k, places] = drive.A[-1]
            efforts[k, n + k] -= self.viscous[k]
            F[k, n + k] = 1.0
        F[n : 2 * n] = self.mobility @ efforts
        return F

    @cached_property
    def _moves(self) -> list[tuple[list[tuple[int, int]], Array]]:
        """In the hyper-period: (drives that are sampled, with the number of the sample), the motion until the next
        samples."""
        at: dict[Fraction, list[tuple[int, int]]] = {}
        for k, drive in enumerate(self.drives):
            for number in range(int(self.hyper_period / drive.period)):
                at.setdefault(number * drive.period, []).append((k, number % len(drive.samples)))
        times = [*sorted(at), self.hyper_period]
        spans = {later - now for now, later in pairwise(times)}
        motions = {span: exponential(float(span) * self._flow) for span in spans}
        return [(at[now], motions[later - now]) for now, later in pairwise(times)]

    def growth(self, factors: Mapping[tuple[int, str], float]) -> tuple[float, Array]:
        """(growth in a hyper-period, how far each drive takes part) with gains of (drive, loop) times a factor."""
        sizes, modes = np.linalg.eig(self.monodromy(factors))
        mode, n = modes[:, int(np.argmax(np.abs(sizes)))], len(self.drives)
        return float(np.abs(sizes).max()), np.abs(mode[n : 2 * n])

    def monodromy(self, factors: Mapping[tuple[int, str], float]) -> Array:
        """What a hyper-period does to z."""
        size = len(self._flow)
        whole = np.eye(size)
        for sampled, motion in self._moves:
            for k, number in sampled:
                drive, places = self.drives[k], self._places[k]
                jump, parts = np.eye(size), drive.samples[number]
                # each loop's gain is in a product with others, but scaled alone it is in sums only
                found = parts[""]
                for loop in (loop for loop in parts if loop):
                    found = found + (factors.get((k, loop), 1.0) - 1.0) * (parts[""] - parts[loop])
                jump[places[:-2]] = 0.0
                jump[np.ix_(places[:-2], places)] = found
                whole = jump @ whole
            whole = motion @ whole
        return whole


def unstable_servo_loops(state: RigState) -> list[Cause]:
    """The drive whose own loops are unstable the most, with the fix; none where that is not known."""
    if (loops := servo_loops(state)) is None:
        return []
    growth, shares = loops.growth({})
    if not _grows(state, loops, growth):
        return []
    k = int(np.argmax(shares))
    dof, name = loops.drives[k].dof, state.name(loops.drives[k].dof)
    for loop in ("velocity", "position"):
        if loop not in loops.drives[k].samples[0]:
            continue
        if loop == "velocity" and "position" in loops.drives[k].samples[0]:
            alone = loops.growth({(k, "position"): 0.0})[0]
            if not alone > 1.0 + LEAST_GROWTH:
                continue  # the velocity loop is stable by itself
        if (factor := _largest_factor(loops, k, loop)) is None:
            break
        gain = float(getattr(_loops_of(_own(state, dof)), loop).gain)
        was, allowed = (_shown(state, dof, loop, value) for value in (gain, rounded_down(factor * gain)))
        what = f"the gain {was} of the {loop} loop in the drive of joint '{name}' is unstable"
        return [Cause(dof, f"{what}; lower joints.{name}.actuator.loops.{loop}.gain to at most {allowed}")]
    what = f"the loops in the drive of joint '{name}' are unstable"
    return [Cause(dof, f"{what}; lower its loops.velocity.gain and loops.position.gain, or raise integral_time")]


def _shown(state: RigState, dof: int, loop: str, gain: float) -> str:
    return state.show(gain, "damping", dof) if loop == "velocity" else f"{float(f'{gain:.3g}'):.6g} 1/s"


def _grows(state: RigState, loops: SampledDrives, growth: float) -> bool:
    per_tick = growth ** (state.tick_model.step / float(loops.hyper_period))
    return growth > 1.0 + LEAST_GROWTH and state.explains(per_tick)


def _largest_factor(loops: SampledDrives, k: int, loop: str) -> float | None:
    """Of the gain of a loop of drive k, at which nothing grows; None where there is none. Under a position loop a gain
    that is far too low is unstable too."""

    def grows(factor: float) -> bool:
        return loops.growth({(k, loop): factor})[0] > 1.0 + LEAST_GROWTH

    low, high = SMALLER, 1.0
    while grows(low):
        low, high = SMALLER * low, low
        if low < LEAST_FACTOR:
            return None
    for _ in range(BISECTIONS // 3):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if grows(middle) else (middle, high)
    return low


def servo_loops(state: RigState) -> SampledDrives | None:
    """The loops that simulated drives close; None without any, of too many, and of drives whose states follow the
    accelerations of joints."""
    plant = state.tick_model.plant
    known = np.asarray(plant.locked_or_imposed(state.state), dtype=bool)
    names = [name for name in plant.drive_controlled if _loops_of(plant.actuators.get(name)) is not None]
    dofs = sorted(k for k in map(plant.model.dof_index, names) if not known[k])
    if not dofs or len(known) > MAX_SIZE or plant.inertial_drives:
        return None
    t = state.tick * state.tick_model.step
    positions = np.asarray(plant.model.equations.chart(plant.motion(t, state.state)[0]), dtype=float)
    mobility = plant.mobility_matrix(t, state.state)[np.ix_(dofs, dofs)]
    before, ops.quantisation.off = ops.quantisation.off, True
    try:
        drives = tuple(_linearised(_own(state, k), k, float(positions[k]), t) for k in dofs)
    finally:
        ops.quantisation.off = before
    loops = SampledDrives(drives, np.asarray(mobility, dtype=float), _viscous(state)[dofs])
    return loops if loops.count <= MOST_SAMPLES else None


def _own(state: RigState, dof: int) -> Any:
    return state.tick_model.plant.actuators[state.name(dof)]


def _loops_of(actuator: Any) -> Any:
    """The loops of the drive of one joint; None of other actuators."""
    samplers = (one.sampler for one in getattr(actuator, "sampled", {}).values())
    return next((sampler.loops for sampler in samplers if hasattr(sampler, "loops")), None)


def _viscous(state: RigState) -> Array:
    """(nv,) friction per velocity of joints that move slowly."""
    equations, nv = state.tick_model.plant.model.equations, state.tick_model.nv
    efforts = [np.asarray(equations.friction_effort(np.full(nv, MOVING + d)), dtype=float) for d in (-WIDTH, WIDTH)]
    slope = (efforts[1] - efforts[0]) / (2.0 * WIDTH)
    return np.abs(slope)


def _linearised(actuator: Any, dof: int, position: float, t: float) -> SampledLoop:
    """Its motion where it moves slowly, and its samples at rest."""
    moving, resting = (Layout(start := actuator.initial(position, v)).pack(start) for v in (MOVING, 0.0))
    layout = Layout(actuator.initial(position, 0.0))
    m, number = layout.size, layout.place("sample").where.start

    def flow(z: Array) -> Array:
        u = {"request": 0.0, "position": z[m], "velocity": z[m + 1]}
        rates, outputs = actuator.flow(t, actuator.params, layout.unpack(z[:m]), u)
        return np.concatenate([layout.pack(rates), [outputs["effort"]]])

    def sampled(of: Any, z: Array) -> Array:
        u = dict.fromkeys(SETPOINTS, 0.0) | {"setpoint_position": position, "enabled": 1.0}
        u |= {"request": 0.0, "position": z[m], "velocity": z[m + 1]}
        x = layout.unpack(z[:m])
        return layout.pack({**x, **of.update(t, of.params, x, u)})

    loops = _loops_of(actuator)
    count = max(loops.every(name) for name in ("position", "velocity"))
    found = []
    patterns: dict[tuple[bool, bool], Mapping[str, Array]] = {}
    for k in range(count):
        due = tuple(k % loops.every(name) == 0 for name in ("position", "velocity"))
        at = np.concatenate([resting, [position, 0.0]])
        at[number] = k
        if due not in patterns:
            patterns[due] = {
                loop: _differences(partial(sampled, _without(actuator, loop)), at, number)
                for loop in ("", *(loop for loop in loops.loops if loop != "current"))
            }
        found.append(patterns[due])
    A = _differences(flow, np.concatenate([moving, [position, MOVING]]), number)
    return SampledLoop(dof, A, tuple(found), Fraction(actuator.period).limit_denominator(10**9))


def _without(actuator: Any, loop: str) -> Any:
    """The drive without the gain of one loop."""
    if not loop:
        return actuator
    other = copy.copy(actuator)
    ((before, one),) = actuator.sampled.items()
    sampler = copy.copy(one.sampler)
    sampler.loops = replace(sampler.loops, **{loop: replace(getattr(sampler.loops, loop), gain=0.0)})
    other.sampled = {before: replace(one, graph=other, sampler=sampler)}
    return other


def _differences(fn: Any, at: Array, number: int) -> Array:
    """∂fn/∂z; the number of the sample is no state."""
    units = np.eye(len(at))
    slopes = [
        np.zeros_like(fn(at)) if k == number else (fn(at + WIDTH * e) - fn(at - WIDTH * e)) / (2 * WIDTH)
        for k, e in enumerate(units)
    ]
    found = np.array(slopes, dtype=float).T
    if len(found) > number:
        found[number] = 0.0
    return found
