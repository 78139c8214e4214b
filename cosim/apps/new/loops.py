"""The actuated joints of a first rig with closed loops, and a small motion of them.

As many joints of coupled loops are actuated as may move independently: first the ones that the robot file actuates,
then those without a spring, then those nearest to the base. All others are passive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cosim.apps.new.loop_starts import LoopSpace
from cosim.core.errors import InputError, SourceLocation, listed, plural
from cosim.core.types import Array
from cosim.mechanics.multibody.assembly import closed_within_tolerance, find_consistent_state
from cosim.mechanics.multibody.loop_motions import (
    CoupledLoops,
    closed_beside,
    coupled_loops,
    nearest_to_base,
)
from cosim.mechanics.multibody.model import Model

LEAST = 0.1, 0.03, 0.01, 1e-3  # of what a drive moves by itself, see `CoupledLoops.chosen`: the first that is possible
SAMPLES = 8  # of a motion whose loops have to close
SHARES = (
    1.0,
    0.5,
    0.25,
    0.1,
    0.05,
    0.02,
    0.01,
    0.005,
    0.002,
)  # of the usual travel, of which the first is taken that loops and limits let
FASTER = 3.0  # than its usual motion, from which on a joint that follows moves too fast
DECIMALS = 12  # of a position in a loop [rad or m]
DIGITS = 6  # of the start of an actuated joint


@dataclass(frozen=True)
class Drivable:
    """What is known of the dofs (nv,) before their loops are planned. still: whether they are latched; held: whether
    they are if no loop moves them; single: whether their joint can have a drive; travel: of a usual motion; of_file:
    those that the robot file actuates; lower, upper: their limits."""

    still: Array
    held: Array
    single: Array
    lower: Array
    upper: Array
    travel: Array
    of_file: frozenset[int]


@dataclass(frozen=True)
class LoopPlan:
    """The closed loops of a rig at its start q (nq,), and for each the dofs that are actuated.

    movable: (nv,) dofs; of_file: the actuated ones that the robot file actuates; moved: why the loops start elsewhere
    than drawn, "" where they do not; goals: positions at the end of the motion there, by actuated dof."""

    model: Model
    q: Array
    movable: Array
    loops: Sequence[CoupledLoops] = ()
    actuated: Sequence[Sequence[int]] = ()
    of_file: frozenset[int] = frozenset()
    moved: str = ""
    goals: Mapping[int, float] = field(default_factory=dict)

    @property
    def dofs(self) -> list[int]:
        """The dofs that the loops couple."""
        return [dof for loops in self.loops for dof in loops.dofs.tolist()]

    @property
    def passive(self) -> list[int]:
        """The dofs of loops without a drive."""
        return sorted(set(self.dofs).difference(*self.actuated))

    @property
    def motions(self) -> Array:
        """(nv, m): velocities of all motions that are possible at the start; the identity without loops."""
        outside = np.flatnonzero(self.movable & ~np.isin(np.arange(self.model.nv), self.dofs))
        found = [np.eye(self.model.nv)[:, outside]]
        for loops in self.loops:
            found.append(np.zeros((self.model.nv, loops.independent)))
            found[-1][loops.dofs] = loops.velocities
        return np.hstack(found)

    def following(self, q: Array) -> Array:
        """(nv, nv): the velocities of all dofs at q per velocity of each, 0 of the passive ones."""
        rates = np.eye(self.model.nv)
        rates[:, self.passive] = 0.0
        for loops, actuated in zip(self.loops, self.actuated, strict=True):
            rates[np.ix_(loops.dofs, np.array(actuated, dtype=int))] = loops.at(self.model, q).following(actuated)
        return rates

    def closed(self, q: Array) -> Array:
        """The coordinates (nq,) to which the passive dofs move while all others stay."""
        found = closed_beside(self.model, q, self.passive) if self.passive else q
        return q if found is None else found

    def effort(self, q: Array, v: Array, a: Array) -> Array:
        """(nv,) that the accelerations a of all dofs but the passive ones require, friction included; a: (nv,)."""
        equations, known = self.model.equations, ~np.isin(np.arange(self.model.nv), self.passive)
        friction = equations.friction_effort(v)
        if known.all():
            return np.asarray(equations.inverse_dynamics(q, v, a) + friction)
        _, effort = equations.hybrid_dynamics(q, v, a, -friction, known)
        return np.asarray(effort + friction)

    @property
    def positions(self) -> Array:
        """(nv,) of the dofs at the start."""
        return np.asarray(self.model.equations.chart(self.q), dtype=float)

    def summary(self) -> Iterator[str]:
        """Of each set of coupled loops which joints are actuated and why, and why the start was chosen."""
        names = self.model.dof_names
        for loops, actuated in zip(self.loops, self.actuated, strict=True):
            n, leave = loops.independent, "leaves" if len(loops.constraints) == 1 else "leave"
            line = f"{named(loops)} {leave} {n} independent {plural(n, 'motion')}"
            if actuated:
                line = f"{line}; actuated: {listed([repr(names[k]) for k in actuated])}, {self._why(actuated)}"
            if left := dict.fromkeys(repr(names[k].partition(".")[0]) for k in loops.left(actuated)):
                line = f"{line}; {listed(list(left))} can also move without a drive"
            yield line
        if self.moved:
            yield self.moved

    def _why(self, actuated: Sequence[int]) -> str:
        given = [dof for dof in actuated if dof in self.of_file]
        reasons = ["as in the robot file"] * bool(given) + ["nearest to the base"] * (len(given) < len(actuated))
        return " or ".join(reasons)


def named(loops: CoupledLoops) -> str:
    """The loops by the names of their constraints."""
    return f"{plural(len(loops.constraints), 'loop')} {listed([repr(name) for name in loops.constraints])}"


def plan_loops(model: Model, guess: Array, dofs: Drivable) -> LoopPlan:
    """The loops of a model near a guess (nq,).

    Raises InputError for loops that do not close, and for loops whose independent joints are not found."""
    if not model.constraint_rows:
        return LoopPlan(model, guess, np.ones(model.nv, dtype=bool))
    model, drawn = closed_within_tolerance(model, guess, dofs.still)
    coupled = [dof for loops in coupled_loops(model, drawn, ~dofs.still) for dof in loops.dofs.tolist()]
    held = dofs.held & ~np.isin(np.arange(model.nv), coupled)
    space = LoopSpace(model, ~(dofs.still | held), dofs.lower, dofs.upper)
    plan = _best(space, drawn, dofs)
    if plan is None:
        names = [repr(name) for name, still in zip(model.dof_names, dofs.still, strict=True) if not still]
        what = f"the loops are singular where they start, so the independent ones of {listed(names)} are not known"
        place = model.equations.constraints.members[0].place
        raise InputError(f"{what}; draw the robot in another position", place)
    _check_inside(space, plan)
    plan = _with_round_start(space, plan, dofs)
    goals: dict[int, float] = {}
    for loops, actuated in zip(plan.loops, plan.actuated, strict=True):
        goals |= _goals(space, plan, loops, actuated, dofs)
    return replace(plan, goals=goals)


def _check_inside(space: LoopSpace, plan: LoopPlan) -> None:
    """Raises InputError for the first loops with joints outside of their limits: no better start was found."""
    for loops in plan.loops:
        outside = [dof for dof in loops.dofs.tolist() if not space.is_inside(plan.q, [dof], 0.0)]
        if outside:
            names = listed([repr(plan.model.dof_names[k]) for k in outside])
            what = f"no position is found in which it is closed inside of the limits of {names}"
            raise InputError(f"{what}; correct the limits, or draw the robot inside of them", _place(plan, loops))


def _place(plan: LoopPlan, loops: CoupledLoops) -> SourceLocation:
    members = plan.model.equations.constraints.members
    return next(constraint.place for constraint in members if constraint.name == loops.constraints[0])


def _best(space: LoopSpace, drawn: Array, dofs: Drivable) -> LoopPlan | None:
    """At the first start that is regular and where the joints that the robot file actuates move the loops, as many as
    are independent; None if all are singular."""
    best: LoopPlan | None = None
    starts = ((least, *start) for least in LEAST for start in space.starts(drawn))
    for least, place, moved in starts:
        plan = _at(space, place, moved, dofs, least)
        if plan is not None and (best is None or len(plan.of_file) > len(best.of_file)):
            best = plan
        if best is not None and len(best.of_file) >= sum(_able(loops, dofs) for loops in best.loops):
            break
    return best


def _able(loops: CoupledLoops, dofs: Drivable) -> int:
    """How many of the joints that the robot file actuates may at most move loops independently."""
    return min(loops.independent, len(dofs.of_file.intersection(loops.dofs.tolist())))


def _at(space: LoopSpace, q: Array, moved: str, dofs: Drivable, least: float) -> LoopPlan | None:
    """The plan at q (nq,); None where it is singular. least: of a drive, see `CoupledLoops.chosen`."""
    every = np.ones(space.model.nv, dtype=bool)
    try:
        rounded = np.round(q, DECIMALS) + 0.0  # as the rig has it: next to a singular position every digit counts
        state = find_consistent_state(space.model, rounded, np.zeros(space.model.nv), every, ~every)
    except InputError:
        return None
    model = space.model.without(state.redundant, state.inexact)
    loops = coupled_loops(model, state.q, space.movable)
    actuated = [_actuated(model, each, dofs, least) for each in loops]
    of_file = dofs.of_file.intersection(dof for own in actuated for dof in own)
    return LoopPlan(model, state.q, space.movable, loops, actuated, of_file, moved)


def _actuated(model: Model, loops: CoupledLoops, dofs: Drivable, least: float) -> list[int]:
    springs = [joint.has_spring for joint, kind in zip(model.joints, model.kinds, strict=True) for _ in range(kind.nv)]
    order = [dof for dof in nearest_to_base(model, loops) if dofs.single[dof]]
    order.sort(key=lambda dof: (dof not in dofs.of_file, springs[dof]))
    found = loops.chosen(order, least)
    return sorted(loops.chosen([*found, *order], LEAST[-1]))


def _with_round_start(space: LoopSpace, plan: LoopPlan, dofs: Drivable) -> LoopPlan:
    """With the actuated joints at round positions."""
    actuated = [dof for own in plan.actuated for dof in own]
    at = space.positions(plan.q)[actuated]
    step = np.array([float(f"{x:.{DIGITS}g}") for x in at]) - at
    found = _at(space, plan.closed(space.moved(plan.q, actuated, step)), plan.moved, dofs, LEAST[-1])
    usable = found is not None and found.actuated == plan.actuated and space.is_inside(found.q, found.dofs)
    return found if found is not None and usable else plan


def _goals(
    space: LoopSpace, plan: LoopPlan, loops: CoupledLoops, actuated: Sequence[int], dofs: Drivable
) -> dict[int, float]:
    """The largest motion of the actuated joints in which the loops stay closed, inside of the limits and regular."""
    if not actuated:
        return {}
    start, travel = space.positions(plan.q)[actuated], dofs.travel[actuated]
    for share in SHARES:
        for side in (1.0, -1.0):
            if _reaches(space, plan, loops, actuated, side * share * travel, dofs):
                return dict(zip(actuated, (start + side * share * travel).tolist(), strict=True))
    names = listed([repr(plan.model.dof_names[k]) for k in actuated])
    what = f"{named(loops)} and the limits of the joints there do not let {names} move from the start"
    raise InputError(f"{what}; correct the limits, or draw the robot in another position", _place(plan, loops))


def _reaches(
    space: LoopSpace, plan: LoopPlan, loops: CoupledLoops, actuated: Sequence[int], way: Array, dofs: Drivable
) -> bool:
    """Whether the actuated dofs can go this way [rad or m]."""
    others = [dof for dof in loops.dofs.tolist() if dof not in actuated]
    checked = [dof for dof in others if dofs.single[dof]]
    place: Array | None = plan.q
    for _ in range(SAMPLES):
        before = space.positions(place)[checked]
        place = closed_beside(space.model, space.moved(place, actuated, way / SAMPLES), others)
        if place is None or not space.is_inside(place, loops.dofs.tolist(), beside=plan.q):
            return False
        way_there = SAMPLES * np.abs(space.positions(place)[checked] - before)
        if (way_there > FASTER * dofs.travel[checked]).any():
            return False
        if len(loops.at(plan.model, place).chosen(actuated, 0.5 * LEAST[-1])) < len(actuated):
            return False
    return True
