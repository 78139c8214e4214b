"""What the joints with real motors are about to do, from where they stand now: known before they are switched on.

Measured with motors off, for the question to a human, the page and the control socket; `arm` decides with the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.limits import CODES, POSITION_TOLERANCE
from cosim.control.start_blend import LONGEST_BLEND, VELOCITY_TOLERANCE, BlendBounds, blended, ends
from cosim.core.driver_contract import AddedTurns
from cosim.core.errors import RunError
from cosim.core.units import TURN
from cosim.execution.hardware.manager import PowerOnPlace
from cosim.simulation.tick.arming import depths_at_start
from cosim.simulation.tick.first_references import Start, blend_bounds

if TYPE_CHECKING:
    from cosim.control.control_loop import ControlLoop
    from cosim.core.types import Array
    from cosim.simulation.tick.tick_model import TickModel

# rad or m by which a joint may have moved since the plan was agreed to
MOVED = {"rad": 0.02, "m": 0.002}
MOST_TICKS = 120_000  # of a run that are looked at
REPORTED = PowerOnPlace(AddedTurns(), False)  # as the drive reports it
SEARCH_STEPS = 20  # of the bisection for the distance from which a joint could start


@dataclass(frozen=True)
class PlannedMotion:
    """What a joint is about to do [rad or m, s].

    measured: where it stands; reference: the first position of its trajectory, on the nearest turn of a continuous
    joint; turns: whole turns from the trajectory to there; lowest, highest, speed: of its reference, blend included;
    blend: until it is on its trajectory; run: how long it is commanded; beyond: which of its limits it leaves, in
    words, or ""; unknown: why its reference is not known ahead, else "".
    """

    joint: str
    unit: str
    measured: float
    reference: float = math.nan
    turns: int = 0
    lowest: float = math.nan
    highest: float = math.nan
    speed: float = math.nan
    blend: float = 0.0
    beyond: str = ""
    unknown: str = ""
    power_on: PowerOnPlace = REPORTED
    run: float = math.inf

    @property
    def needs_turns_confirmed(self) -> bool:
        """Whether it is to be confirmed separately: where it stands, or that it rotates by more than a turn."""
        return self.beyond_a_turn or self.power_on.ambiguous

    @property
    def beyond_a_turn(self) -> bool:
        """Whether it rotates by more than a turn until it is on its trajectory."""
        return self.unit == "rad" and abs(self.measured - self.reference) > TURN

    @property
    def doubt(self) -> str:
        """What is to be confirmed separately, in words."""
        if not self.beyond_a_turn:
            return self._ambiguity
        return self._far + (f"; {self._ambiguity}" if self.power_on.ambiguous else "")

    @property
    def _ambiguity(self) -> str:
        where = f"joint {self.place} if its drive has lost no whole turns without power"
        return f"{where}: its limits have room for several; compare where it stands"

    @property
    def _far(self) -> str:
        where = f"joint {self.place}, {self._turns} from the start of its trajectory"
        return f"{where} at {self._show(self.reference)}"

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"'{self.joint}' is at {self._show(self.measured)}"

    @property
    def distance(self) -> str:
        """How far it is from its trajectory."""
        return f"{self.place}, {self._turns} from {self._show(self.reference)}"

    @property
    def _turns(self) -> str:
        return f"{abs(self.measured - self.reference) / TURN:.3g} turns"

    def __str__(self) -> str:
        now = f"{self.joint} is at {self._show(self.measured)}{reported(self.power_on, self.measured, self.unit)}"
        if self.unknown:
            return f"{now}; how far it goes is not known ahead: {self.unknown}"
        way = f"its reference begins at {self._show(self.reference)}"
        if self.turns:
            way += f" ({self.turns:+d} turn{'s' if abs(self.turns) > 1 else ''}, the nearest one)"
        if self.blend > self.run:
            way += f", is not reached in this run of {self.run:.3g} s"
        else:
            way += f", is reached within {self.blend:.3g} s" if self.blend else ", where it stands"
        span = f"{self._show(self.lowest)} to {self._show(self.highest)}"
        return f"{now}; {way}; in all it goes from {span}, at up to {self._show(self.speed)}/s{self.beyond}"

    def _show(self, value: float) -> str:
        return _shown(value, self.unit)


def _shown(value: float, unit: str) -> str:
    return f"{float(f'{value:.4g}'):.6g} {unit}" if abs(value) >= 5e-5 else f"0 {unit}"


def reported(place: PowerOnPlace, position: float, unit: str) -> str:
    """What the drive of a joint at this position reports, in brackets where it is not simply that."""
    if place.ambiguous:
        return " (if its drive has lost no whole turns without power)"
    turns, shift = place.added
    if not turns:
        return ""
    number = "1 turn" if abs(turns) == 1 else f"{abs(turns)} turns"
    return f" (its drive reports {_shown(position - shift, unit)}, {number} of the drive from there)"


@dataclass(frozen=True)
class MotionPlan:
    """Of all joints with real motors. seconds: how much of the run was looked at, whole: whether that is all of it."""

    joints: tuple[PlannedMotion, ...]
    seconds: float
    whole: bool = True

    def lines(self) -> Iterator[str]:
        """For humans, a line each."""
        yield from map(str, self.joints)
        if not self.whole:
            yield f"of the run, the first {self.seconds:g} s were looked at"

    @property
    def confirm_turns(self) -> tuple[PlannedMotion, ...]:
        """Joints that are confirmed separately: they rotate by more than a turn to their trajectory, or their drives
        may be on another turn than they report."""
        return tuple(joint for joint in self.joints if joint.needs_turns_confirmed)

    def check_turns(self, fix: str) -> None:
        """Raises RunError for all joints that are to be confirmed separately; fix: what allows it."""
        if doubtful := self.confirm_turns:
            raise RunError(f"{_doubt(doubtful)}; {_remedy(doubtful)}, or {fix}")

    def mover(self, later: MotionPlan) -> PlannedMotion | None:
        """The first joint that has moved between two plans, as in the later one."""
        for before, now in zip(self.joints, later.joints, strict=True):
            if not abs(now.measured - before.measured) <= MOVED[now.unit]:
                return now
        return None

    def moved(self, later: MotionPlan) -> str:
        """Which joint has moved between two plans, in words; "" for none."""
        if (now := self.mover(later)) is None:
            return ""
        distance = abs(now.measured - next(one.measured for one in self.joints if one.joint == now.joint))
        return f"joint '{now.joint}' has moved by {distance:.4g} {now.unit} since its motion was confirmed"


def _doubt(doubtful: Sequence[PlannedMotion]) -> str:
    """What is to be confirmed of these joints, in words."""
    if len(doubtful) == 1:
        return doubtful[0].doubt
    found = []
    if far := [joint.distance for joint in doubtful if joint.beyond_a_turn]:
        found.append(f"joints are more than a turn from the starts of their trajectories: {', '.join(far)}")
    if unsure := [joint.place for joint in doubtful if joint.power_on.ambiguous]:
        why = "whose drives may have lost whole turns without power, as their limits have room for several"
        found.append(f"joints {why}: {', '.join(unsure)}; compare where they stand")
    return "; ".join(found)


def _remedy(doubtful: Sequence[PlannedMotion]) -> str:
    """What else than the confirmation helps."""
    several = len(doubtful) > 1
    if any(joint.power_on.ambiguous for joint in doubtful):
        it, drives = ("them", "drives that keep their") if several else ("it", "a drive that keeps its")
        return f"home {it}, or declare `turns: kept` of {drives} turns"
    return f"check {'their zeros, move them' if several else 'its zero, move it'} within a turn by hand"


def plan_of(
    model: TickModel, start: Start, position: Array, ticks: int, places: Mapping[str, PowerOnPlace]
) -> MotionPlan:
    """The plan of a run of so many ticks after the first; 0: until the joints are on their trajectories.

    position: (nv,) as measured."""
    looked_at, found = min(ticks, MOST_TICKS), dict[str, PlannedMotion]()
    for loop in model.loops:
        motions = _reference_motions(model, loop, start.references, position, ticks)
        found |= {motion.joint: motion for motion in motions}
    planned = [found.get(here.joint, here) for here in standing(model, position)]
    joints = tuple(replace(joint, power_on=places.get(joint.joint, REPORTED)) for joint in planned)
    return MotionPlan(joints, looked_at * model.step, looked_at == ticks)


def standing(model: TickModel, position: Array) -> tuple[PlannedMotion, ...]:
    """Where the joints with real motors stand, if nothing commands them. position: (nv,) as measured."""
    those, real = model.plant.model, model.plant.real
    rows = zip(those.dof_names, those.dof_units, position.tolist(), strict=True)
    return tuple(
        PlannedMotion(name, unit, value, unknown="no controller commands it")
        for name, unit, value in rows
        if name in real
    )


def _reference_motions(
    model: TickModel, loop: ControlLoop, start: BumplessStart, position: Array, ticks: int
) -> Iterator[PlannedMotion]:
    names, units = model.plant.model.dof_names, model.plant.model.dof_units
    real = [i for i, k in enumerate(loop.index) if names[k] in model.plant.real]
    if not loop.needs_reference("position"):
        for k in loop.index[real]:
            unknown = f"controller '{loop.name}' follows no trajectory of positions"
            yield PlannedMotion(names[k], units[k], float(position[k]), unknown=unknown)
        return
    if not real:
        return
    own = start.at(loop.index)
    until = ends(own)
    count = min(ticks or math.ceil(min(float(np.max(until)), LONGEST_BLEND) / model.step), MOST_TICKS) + 1
    places, speeds = loop.samples(model.step, model.compiled)(count)
    added = own._replace(t=0.0).added(model.step * np.arange(count)[:, None])
    first, places, speeds = places[0] + own.turns, places + added["position"], speeds + added["velocity"]
    for i in real:
        k = int(loop.index[i])
        yield PlannedMotion(
            names[k],
            units[k],
            float(position[k]),
            float(first[i]),
            round(float(own.turns[i]) / TURN),
            float(places[:, i].min()),
            float(places[:, i].max()),
            float(np.abs(speeds[:, i]).max()),
            float(until[i]),
            _beyond(model, k, places[:, i], speeds[:, i]),
            run=ticks * model.step if ticks else math.inf,
        )


def _beyond(model: TickModel, k: int, places: Array, speeds: Array) -> str:
    """The limits of joint k that its reference leaves, for which the guard will stop the run."""
    limits, unit, found = model.limits, model.plant.model.dof_units[k], []
    if places.min() < limits.lower[k] - POSITION_TOLERANCE or places.max() > limits.upper[k] + POSITION_TOLERANCE:
        found.append(f"{limits.lower[k]:.4g} to {limits.upper[k]:.4g} {unit}")
    if np.abs(speeds).max() > limits.velocity[k] * (1.0 + VELOCITY_TOLERANCE):
        found.append(f"{limits.velocity[k]:.4g} {unit}/s")
    return f": beyond its limits of {' and '.join(found)}" if found else ""


def check_start(
    model: TickModel,
    start: Start,
    codes: Array,
    blend: float,
    position: Array,
    velocity: Array,
    places: Mapping[str, PowerOnPlace],
) -> None:
    """Raises RunError for the first joint with a code, see `refused`: its position or velocity would stop the first
    tick, or its reference would leave the limits on the way to its trajectory."""
    limits, mechanism = model.limits, model.plant.model
    for k in np.flatnonzero(codes)[:1]:
        name, unit, at = mechanism.dof_names[k], mechanism.dof_units[k], position[k]
        if not limits.lower[k] <= at <= limits.upper[k] and codes[k] == CODES["position"]:
            stands = f"{at:.6g} {unit}{reported(places.get(name, REPORTED), float(at), unit)}"
            what = f"joint '{name}' is at {stands} before the first command, outside its limits"
            fix = "move it back by hand, or check its zero"
            raise RunError(f"{what} {limits.lower[k]:.6g} to {limits.upper[k]:.6g} {unit}; {fix}")
        if abs(velocity[k]) > limits.velocity[k]:
            what = f"joint '{name}' moves at {velocity[k]:.6g} {unit}/s before the first command"
            raise RunError(f"{what}, above its limit of {limits.velocity[k]:.6g} {unit}/s; wait until it is at rest")
        raise RunError(_leaves_limits(model, start, int(k), blend, position, velocity))


def check_contacts(model: TickModel, x: Array, position: Array, velocity: Array) -> None:
    """Raises RunError for real joints that start inside of a virtual contact, see `depths_at_start`."""
    for name, depth in depths_at_start(model, x, position, velocity).items():
        if depth > 0.0:
            what = f"virtual contact '{name}' is {1e3 * depth:.4g} mm deep before the first command"
            raise RunError(f"{what}, and its force would be a blow; move the joints out of it by hand")


def _leaves_limits(model: TickModel, start: Start, k: int, blend: float, position: Array, velocity: Array) -> str:
    """Of a joint whose reference would leave its limits in the blend."""
    loop = next(loop for loop in model.loops if k in loop.index and loop.needs_reference("position"))
    i, mechanism, limits = int(np.flatnonzero(loop.index == k)[0]), model.plant.model, model.limits
    name, unit = mechanism.dof_names[k], mechanism.dof_units[k]
    samples, own = loop.samples(model.step, model.compiled), start.references.at(loop.index)
    first, speed = (values[0][i] for values in samples(1))
    distance, mismatch = position[k] - first - own.turns[i], velocity[k] - speed
    bounds = BlendBounds(*(values[[i]] for values in blend_bounds(model, loop)))
    way = f"{abs(distance):.4g} {unit} from the start of its trajectory at {first + own.turns[i]:.4g} {unit}"

    def fits(distance: float, mismatch: float) -> bool:
        def one(count: int) -> tuple[Array, Array]:
            places, speeds = samples(count)
            return places[:, [i]] + own.turns[i], speeds[:, [i]]

        found = blended(loop.trajectory, one, np.array([distance]), np.array([mismatch]), bounds, blend, model.step)
        return not found.leaves.any()

    if np.isinf(start.too_fast[k]):
        what = f"the way there would take more than {LONGEST_BLEND:g} s within its velocity limit"
    elif start.too_fast[k] > 0.0:
        fastest = limits.velocity[k] + start.too_fast[k]
        what = f"its reference would reach {fastest:.4g} {unit}/s on the way, above its limit of"
        what += f" {limits.velocity[k]:.4g} {unit}/s"
    else:
        what = f"its reference would be {start.outside[k]:.4g} {unit} outside its limits"
        what += f" {limits.lower[k]:.4g} to {limits.upper[k]:.4g} {unit} on the way"
    fix = _fix(fits, distance, (mismatch, -speed), name, unit)
    return f"joint '{name}' is at {position[k]:.4g} {unit}, {way}; {what}; {fix}"


def _fix(
    fits: Callable[[float, float], bool], distance: float, mismatches: tuple[float, float], name: str, unit: str
) -> str:
    """What makes the start possible. mismatches: of the velocity as it is, and if the joint were at rest."""
    mismatch, at_rest = mismatches
    if mismatch != at_rest and fits(distance, at_rest):
        return "wait until it is at rest"
    if fits(0.0, mismatch):
        near, far = 0.0, 1.0
        for _ in range(SEARCH_STEPS):
            middle = 0.5 * (near + far)
            near, far = (middle, far) if fits(middle * distance, mismatch) else (near, middle)
        if near * abs(distance) >= 1e-4:
            return f"move it by hand to within {near * abs(distance):.2g} {unit} of there, or slow the trajectory down"
    if mismatch and fits(distance, 0.0):
        return "let the trajectory begin at rest, such as a sine with `ramp`"
    return f"let the trajectory begin slower and at rest, or change joints.{name}.limits"
