"""Up to which stiffness contacts that real joints feel are stable, see `control.virtual_walls`.

The damping is what the rig gives for joints and drives: viscous friction. Dry friction and the gains of controllers are
not counted. The feedback of a drive that answers commands is a step old, and its frames take a part of a step more. The
Jacobian is taken in poses that touch, within the limits of the joints; the worst one counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cosim.control.virtual_walls import MARGIN, largest_stiffness
from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError, SourceLocation
from cosim.core.types import Array
from cosim.core.units import show_time
from cosim.mechanics.multibody.contact_set import BodyContact
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.drivers import cycle_traffic
from cosim.rig.wiring.virtual_contacts import loaded_joints, movers
from cosim.simulation.plant.plant import Plant

POSES, STEPS = 12, 8  # that are tried; of the search for the contact from each
ALONG, NORMAL = 3, 2  # rows of velocities of a point, and the row of its normal
REACH = 1e-4  # m, of a point that touches
WITHOUT_LIMITS = 1.0  # rad or m about the start, where a joint has no limits
STEPS_OF_LOAD_MOTOR = 2  # from a measurement to the effort exerted for it, where the rig gives no time


@dataclass(frozen=True)
class WallLimit:
    """Of a contact: its stiffness and the `largest` one at the limit of stability [N/m], step [s], delay in steps;
    unknown: why there is none."""

    contact: str
    place: SourceLocation
    stiffness: float
    step: float
    largest: float = math.nan
    delay: float = math.nan
    unknown: str = ""

    def __str__(self) -> str:
        if self.unknown:
            return f"contact '{self.contact}': cannot tell up to which stiffness it is stable, {self.unknown}"
        given = f"contact '{self.contact}' with {self.stiffness:.4g} N/m on real joints"
        sampled = f"steps of {show_time(self.step * 1e9)} and feedback {self.delay:.3g} steps old"
        return f"{given}: stable up to {self.largest:.4g} N/m by their damping, {sampled}"

    @property
    def error(self) -> InputError | None:
        """Where the stiffness is above the part of the limit that is accepted."""
        accepted = MARGIN * self.largest
        if self.unknown or self.stiffness <= accepted:
            return None
        unit = 10.0 ** (math.floor(math.log10(accepted)) - 1) if accepted > 0.0 else 1.0  # of two digits
        rounded = f"{math.floor(accepted / unit) * unit:.4g} N/m"
        fix = f"give it at most {rounded}, the joints more damping, or a shorter schedule.step"
        return InputError(f"{self}; {fix}", self.place)


def wall_limits(
    spec: RigSpec, plant: Plant, contexts: Mapping[str, DriverContext], loads: Mapping[str, float]
) -> Iterator[WallLimit]:
    """Of each contact that drives of real joints exert. contexts, loads: by driver; loads: of buses."""
    loaded = loaded_joints(spec)
    for contact, own in plant.contacts.contacts.by_contact:
        described = next(each for each in spec.mechanism.description.contacts if each.name == contact.name)
        exerting = loaded | (set(plant.haptic) if contact.virtual else set())
        felt = [name for name in plant.real if name in exerting and name in set().union(*movers(spec, described))]
        if felt and contact.law.stiffness is not None:
            yield _limit(spec, plant, contexts, loads, contact, own, felt)


def _limit(
    spec: RigSpec,
    plant: Plant,
    contexts: Mapping[str, DriverContext],
    loads: Mapping[str, float],
    contact: BodyContact,
    own: range,
    felt: list[str],
) -> WallLimit:
    step = spec.schedule.step_ns * 1e-9
    known = contact.name, contact.place, float(contact.law.stiffness or math.inf), step
    damping = np.array([_damping(spec, name) for name in felt])
    for name in (name for name, b in zip(felt, damping, strict=True) if b <= 0.0):
        fix = f"measure it (cosim identify) and give joints.{name}.actuator.viscous or a damping of the joint"
        return WallLimit(*known, unknown=f"the rig gives joint '{name}' no viscous damping; {fix}")
    delays = [_delay(spec, contexts, loads, name, step) for name in felt]
    for name in (name for name, delay in zip(felt, delays, strict=True) if math.isnan(delay)):
        return WallLimit(*known, unknown=f"the drive of joint '{name}' does not answer commands: its age is unknown")
    jacobians = list(_touching(plant, contact, own, [plant.model.dof_index(name) for name in felt]))
    if not jacobians:
        return WallLimit(*known, unknown="no pose within the limits of its joints was found in which it touches")
    delay = max(delays)
    largest = min(largest_stiffness(damping, jacobian, step, delay) for jacobian in jacobians)
    return WallLimit(*known, largest=largest, delay=delay)


def _damping(spec: RigSpec, name: str) -> float:
    """Viscous, of the joint and of its drive at the joint."""
    joint = next(each for each in spec.mechanism.description.joints if each.name == spec.owners[name])
    entry = spec.joints[name]
    found = float(joint.damping) + (0.0 if entry.friction is None else float(entry.friction.viscous))
    return found + float(getattr(entry.actuator.params, "viscous", 0.0) if entry.actuator else 0.0)


def _delay(
    spec: RigSpec, contexts: Mapping[str, DriverContext], loads: Mapping[str, float], name: str, step: float
) -> float:
    """From a measurement to the effort exerted for it, in steps; NaN where it is not known."""
    for driver in (driver for driver in spec.drivers if name in driver.loads):
        given = driver.loads[name].delay
        return STEPS_OF_LOAD_MOTOR if given is None else given / step
    driver = next(driver for driver in spec.drivers if name in driver.joints)
    if not cycle_traffic(driver, contexts[driver.name]).back:
        return math.nan
    return 1.0 + loads[driver.name]


def _touching(plant: Plant, contact: BodyContact, own: range, dofs: list[int]) -> Iterator[Array]:
    """The Jacobians (springs, dofs) of the contact in poses in which it touches."""
    mechanism, model, start = plant.full_model, plant.model, np.asarray(plant.start_positions, dtype=float)
    by_name = {joint.name: joint for joint in plant.mechanism.joints}
    ranges = []
    for k in dofs:
        joint = by_name.get(mechanism.dof_names[k])
        lower, upper = (joint.lower, joint.upper) if joint else (-math.inf, math.inf)
        ranges.append(
            (
                lower if math.isfinite(lower) else start[k] - WITHOUT_LIMITS,
                upper if math.isfinite(upper) else start[k] + WITHOUT_LIMITS,
            )
        )
    low, high = (np.array(side) for side in zip(*ranges, strict=True))
    tries = [start[dofs], *np.random.default_rng(0).uniform(low, high, (POSES, len(dofs)))]
    across = contact.law.static > 0.0
    for pose in tries:
        chart = start.copy()
        chart[dofs] = pose
        for _ in range(STEPS):
            gaps, J = _rates(plant, model.equations.coordinates(chart), own, dofs)
            nearest = int(np.argmin(np.abs(gaps)))
            if abs(gaps[nearest]) < REACH:
                touch = gaps < REACH
                rows = [touch & across, touch & across, touch]
                yield J[np.stack(rows, axis=1).ravel()]
                break
            normal = J[ALONG * nearest + NORMAL]
            if not normal @ normal > 0.0:
                break
            chart[dofs] = np.clip(chart[dofs] - gaps[nearest] * normal / (normal @ normal), low, high)


def _rates(plant: Plant, q: Array, own: range, dofs: list[int]) -> tuple[Array, Array]:
    """(gaps (k,), Jacobian (3 k, dofs)) of the points of a contact."""
    nv, equations = plant.model.nv, plant.model.equations

    def at(v: Array) -> tuple[list, Array]:
        points, rates = plant.contacts.points_and_rates(equations, 0.0, q, v)
        by_point = np.asarray(rates, dtype=float).reshape(len(points), -1)
        return points, by_point[own.start : own.stop, :ALONG].ravel()

    points, standing = at(np.zeros(nv))
    columns = [at(np.eye(nv)[k])[1] - standing for k in dofs]
    gaps = np.array([float(points[j].gap) for j in own])
    return gaps, np.stack(columns, axis=1)
