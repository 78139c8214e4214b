"""Motion in absolute coordinates: poses and velocities of the bodies are integrated, and the joints drift apart.

The state is one vector: in space (position, quaternion), in a plane (x, y, angle) of each body, then the velocities of
all bodies. Positions locate the centres of mass.

The state holds no constraint by itself. Its drift is controlled by a projection after every step, one Newton step in
the metric of M with the same LDLᵀ, or by Baumgarte stabilisation, f̈ + 2ω ḟ + ω² f = 0 in place of f̈ = 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile import ArrayPort, Routine, compile
from cosim.core.errors import InputError, RunError, did_you_mean
from cosim.core.types import Numeric
from cosim.mechanics.formulations import check_state, load_formulation
from cosim.mechanics.formulations.cartesian.assembled import CentralFrame, Plane
from cosim.mechanics.formulations.cartesian.system import Cartesian
from cosim.mechanics.multibody import Model, assembly
from cosim.mechanics.multibody.constrained_dynamics import ConstraintRow
from cosim.mechanics.multibody.coordinates import ROTATION, rotation_of
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.kinematics import Placement

DRIFT_CONTROLS = ("projection", "baumgarte", "none")
FREQUENCY = 20.0  # Hz, of the Baumgarte stabilisation
CONSISTENT = 1e-6  # m, rad and their rates, by which a start may violate constraints


class AbsolutePoses:
    """The state of the bodies of a mechanism."""

    def __init__(self, system: Cartesian) -> None:
        self._coms = [body.com for body in system.sweeps.bodies]
        placed = system.placements(system.equations.coordinates(np.zeros(system.equations.nv)))
        plane = system.coordinates if isinstance(system.coordinates, Plane) else None
        self._bodies: list[_InSpace | _InPlane] = [
            _InSpace() if plane is None else _InPlane(plane.basis, CentralFrame.of(here, com))
            for here, com in zip(placed, self._coms, strict=True)
        ]
        self._width, self._size = (7, 6) if plane is None else (3, 3)
        self._speeds = self._width * len(placed)  # where they begin

    def state(self, placed: Sequence[Placement]) -> np.ndarray:
        """x"""
        frames = [CentralFrame.of(here, com) for here, com in zip(placed, self._coms, strict=True)]
        poses = [body.pose(frame) for body, frame in zip(self._bodies, frames, strict=True)]
        speeds = [body.speed(frame) for body, frame in zip(self._bodies, frames, strict=True)]
        return np.concatenate([*poses, *speeds])

    def placements(self, x: Numeric) -> list[Placement]:
        """The bodies in ground axes."""
        found = []
        for body, com, pose, speed in zip(self._bodies, self._coms, *self._split(x), strict=True):
            rotation, center = body.place(pose)
            linear, angular = body.velocity(rotation, speed)
            arm = rotation @ com
            found.append(Placement(rotation, center - arm, angular, linear - ops.cross(angular, arm)))
        return found

    def rate(self, x: Numeric, accelerations: Sequence[Numeric]) -> Numeric:
        """ẋ from the accelerations of the bodies."""
        rates = [body.rate(pose, speed) for body, pose, speed in zip(self._bodies, *self._split(x), strict=True)]
        return ops.concatenate([*rates, *accelerations])

    def moved(self, x: Numeric, changes: Sequence[Numeric]) -> Numeric:
        """x after small displacements of the bodies."""
        poses, _ = self._split(x)
        moved = [body.moved(pose, change) for body, pose, change in zip(self._bodies, poses, changes, strict=True)]
        return ops.concatenate([*moved, x[self._speeds :]])

    def accelerated(self, x: Numeric, changes: Sequence[Numeric]) -> Numeric:
        """x after changes of the velocities."""
        return ops.concatenate([x[: self._speeds], x[self._speeds :] + ops.concatenate(list(changes))])

    def normalised(self, x: Numeric) -> Numeric:
        """x with quaternions of length 1."""
        return self.moved(x, [np.zeros(self._size)] * len(self._bodies))

    def _split(self, x: Numeric) -> tuple[list[Numeric], list[Numeric]]:
        """(pose, velocity) of every body."""
        count, width, size = range(len(self._bodies)), self._width, self._size
        poses = [x[k * width : (k + 1) * width] for k in count]
        return poses, [x[self._speeds + k * size : self._speeds + (k + 1) * size] for k in count]


class _InSpace:
    """Position and quaternion; the velocity of the centre of mass, and the angular velocity along the body's axes."""

    def pose(self, frame: CentralFrame) -> np.ndarray:
        from scipy.spatial.transform import Rotation

        return np.concatenate([frame.center, Rotation.from_matrix(frame.placement.rotation).as_quat()])

    def speed(self, frame: CentralFrame) -> Numeric:
        here = frame.placement
        return np.concatenate([frame.center_velocity, here.rotation.T @ here.angular])

    def place(self, pose: Numeric) -> tuple[Numeric, Numeric]:
        """(axes (3, 3), centre of mass)"""
        return rotation_of(pose[3:]), pose[:3]

    def velocity(self, rotation: Numeric, speed: Numeric) -> tuple[Numeric, Numeric]:
        """(of the centre of mass, angular), along ground axes"""
        return speed[:3], rotation @ speed[3:]

    def rate(self, pose: Numeric, speed: Numeric) -> Numeric:
        return ops.concatenate([speed[:3], ROTATION.rate(pose[3:], speed[3:])])

    def moved(self, pose: Numeric, change: Numeric) -> Numeric:
        return ops.concatenate([pose[:3] + change[:3], ROTATION.integrate(pose[3:], change[3:])])


class _InPlane:
    """Position in the plane, and the angle from the neutral position of the mechanism."""

    def __init__(self, basis: np.ndarray, neutral: CentralFrame) -> None:
        self._first, self._second, self._normal = basis.T
        self._axes, self._height = neutral.placement.rotation, self._normal @ neutral.center

    def pose(self, frame: CentralFrame) -> np.ndarray:
        turned = frame.placement.rotation @ self._axes.T @ self._first
        angle = np.arctan2(self._second @ turned, self._first @ turned)
        return np.array([self._first @ frame.center, self._second @ frame.center, angle])

    def speed(self, frame: CentralFrame) -> Numeric:
        v = frame.center_velocity
        return np.array([self._first @ v, self._second @ v, self._normal @ frame.placement.angular])

    def place(self, pose: Numeric) -> tuple[Numeric, Numeric]:
        s, c, across = ops.sin(pose[2]), ops.cos(pose[2]), ops.skew(self._normal)
        turn = np.eye(3) + s * across + (1.0 - c) * (across @ across)
        return turn @ self._axes, self._first * pose[0] + self._second * pose[1] + self._normal * self._height

    def velocity(self, rotation: Numeric, speed: Numeric) -> tuple[Numeric, Numeric]:
        return self._first * speed[0] + self._second * speed[1], self._normal * speed[2]

    def rate(self, pose: Numeric, speed: Numeric) -> Numeric:
        return speed

    def moved(self, pose: Numeric, change: Numeric) -> Numeric:
        return pose + change


@dataclass(frozen=True)
class AbsoluteRun:
    """Poses (n, 3, 4) of the bodies in ground axes and velocities of the joints' dofs (nv,) at the times t [s], and the
    largest violations of all joints and constraints over the run."""

    t: np.ndarray
    poses: np.ndarray  # (k, n, 3, 4) as `Model.body_poses`
    velocities: np.ndarray  # (k, nv)
    position_violation: float  # m or rad
    velocity_violation: float  # m/s or rad/s


class Violations(NamedTuple):
    """f of the holonomic rows and ḟ of all rows: of the joints, body by body, and of the constraints."""

    residuals: list[Numeric]
    rates: list[Numeric]
    residual: Numeric
    rate: Numeric


def integrate_bodies(
    model: Model,
    q: np.ndarray,
    v: np.ndarray,
    duration: float,
    step: float,
    drift: str = "projection",
    frequency: float = FREQUENCY,
    effort: np.ndarray | None = None,
) -> AbsoluteRun:
    """The motion from (q, v) by RK4, with the damping and friction of the joints.

    q (nq,), v (nv,): of all joints of the tree, with closed loops, as `rig.plant.start` has them. duration, step: s;
    the run ends at the multiple of the step that is nearest to the duration. drift: one of DRIFT_CONTROLS;
    frequency [Hz]: of the Baumgarte stabilisation. effort (nv,): constant efforts on the joints in N·m or N, by
    default none.

    Raises InputError for numbers of another shape, that are not finite or, of times and the frequency, not above 0, for
    a duration below a step, an unknown drift control, a mechanism that the Cartesian formulation cannot treat or that
    needs joint coordinates, and a start that is singular or violates a constraint; RunError if the run diverges.
    """
    if drift not in DRIFT_CONTROLS:
        known = ", ".join(DRIFT_CONTROLS)
        raise InputError(f"there is no drift control '{drift}'{did_you_mean(drift, DRIFT_CONTROLS)}; use {known}")
    if (why := _refusal(model.equations)) is not None:
        raise InputError(why)
    effort = np.zeros(model.nv) if effort is None else effort
    _check_numbers(model.equations, {"q": q, "v": v, "effort": effort})
    _check_times({"duration": duration, "step": step, "frequency": frequency})
    model = model.without(assembly.find_redundant(model, q, np.zeros(model.nv, dtype=bool)))
    rate = 2.0 * math.pi * frequency if drift == "baumgarte" else 0.0
    equations = model.equations
    constraints = replace(equations.constraints, baumgarte_rate=rate)
    formulation = load_formulation("cartesian", MechanismEquations(equations.tree, equations.gravity, constraints))
    assert isinstance(formulation, Cartesian)
    motion = _AbsoluteMotion(formulation, rate, drift == "projection", effort)
    start = motion.start(q, v)
    _check_start(motion, start)
    return _run(motion, start, round(duration / step), step)


def _check_numbers(equations: MechanismEquations, vectors: Mapping[str, np.ndarray]) -> None:
    try:
        check_state(equations, *vectors.values())
    except InputError as error:
        raise InputError(error.what, "effort" if error.place == "tau" else error.place) from None
    for name, given in vectors.items():
        for k in np.flatnonzero(~np.isfinite(np.asarray(given, dtype=float))).tolist():
            raise InputError(f"is {given[k]} at index {k}; give finite numbers", name)


def _check_times(given: Mapping[str, float]) -> None:
    units = {"frequency": "Hz"}
    for name, value in given.items():
        if not (np.isfinite(value) and value > 0.0):
            raise InputError(f"is {value:g} {units.get(name, 's')}; give a finite number above 0", name)
    if given["duration"] < given["step"]:
        raise InputError(f"is {given['duration']:g} s; give at least a step of {given['step']:g} s", "duration")


def _run(motion: _AbsoluteMotion, start: np.ndarray, count: int, step: float) -> AbsoluteRun:
    size = len(start)
    ports = [ArrayPort("x", (size,)), ArrayPort("t", ()), ArrayPort("h", ())]
    advance = compile(motion.stepper(size), ports, "absolute_step")
    states, worst = np.empty((count + 1, size)), np.zeros(2)
    states[0] = start
    for k in range(count):
        states[k + 1], violation = advance(states[k], k * step, step)
        if not np.isfinite(states[k + 1]).all():
            raise RunError(f"the motion in absolute coordinates diverges at {(k + 1) * step:.6g} s; use smaller steps")
        worst = np.maximum(worst, violation)
    seen = compile(motion.seen, [ArrayPort("x", (size,))], "absolute_view")
    poses, velocities = seen(states)
    return AbsoluteRun(np.arange(count + 1) * step, poses, velocities, *map(float, worst))


def _check_start(motion: _AbsoluteMotion, start: np.ndarray) -> None:
    found = motion.violations(motion.poses.placements(start), 0.0)
    names = [c.name for c in motion.system.equations.constraints.members for _ in c.law.rows]
    for kind, values in (("positions", found.residual), ("velocities", found.rate)):
        worst = int(np.argmax(np.abs(values))) if len(values) else 0
        if len(values) and abs(values[worst]) > CONSISTENT:
            named = names[motion.rows[worst] if kind == "velocities" else motion.holonomic[worst]]
            what = f"the initial {kind} violate '{named}' by {abs(values[worst]):.3g}"
            raise InputError(f"{what}; close the loops first: start from q and v of load_rig(FILE).plant.start")


def _refusal(equations: MechanismEquations) -> str | None:
    """Why the motion of a mechanism is not integrated in absolute coordinates, None if it is."""
    tree, constraints = equations.tree, equations.constraints
    for joint, kind in zip(tree.joints, tree.kinds, strict=True):
        if kind.timed:
            return f"joint '{joint.name}' has a given motion, which a run in absolute coordinates does not treat"
    needing = [f"joint '{joint.name}', a mimic," for joint in tree.joints if joint.mimic is not None]
    needing += [f"'{item.name}'" for item in (*constraints.members, *constraints.laws) if item.kinds]
    needing += [f"rotor '{rotor.name}', which turns with several joints," for rotor in tree.rotors]
    needing += [f"the spring in joint '{joint.name}'" for joint in tree.joints if joint.has_spring]
    if not needing:
        return None
    return f"{needing[0]} depends on joint coordinates, which a run in absolute coordinates does not have"


class _AbsoluteMotion:
    """The differential equations of the poses and velocities of a mechanism's bodies, as one state vector."""

    def __init__(self, system: Cartesian, rate: float, projecting: bool, effort: np.ndarray) -> None:
        """rate: ω of the Baumgarte stabilisation [rad/s], 0 for none; effort (nv,): constant."""
        self.system, self.rate, self.projecting, self.effort = system, rate, projecting, effort
        self.poses = AbsolutePoses(system)
        constraints = system.equations.constraints
        self.rows = system.acting
        self.holonomic = [r for r in self.rows if constraints.holonomic[r]]

    def start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.poses.state(self.system.placements(q, v))

    # --- violations ---

    def violations(self, placed: Sequence[Placement], t: Numeric) -> Violations:
        constraints = self.system.equations.constraints
        joints = [forbidden for forbidden, _ in self.system.joint_rows(placed, t)]
        residuals = [ops.array([row.residual for row in rows]) for rows in joints]
        rates = [ops.array([row.rate for row in rows]) for rows in joints]
        found, rate, _ = constraints.rows(placed, *self._no_coordinates, np.zeros(3), t)
        place = np.cumsum(constraints.holonomic, dtype=int) - 1  # of a row among the holonomic ones
        return Violations(residuals, rates, found[place[self.holonomic].tolist()], rate[self.rows])

    def largest(self, found: Violations) -> Numeric:
        """(2,): of positions and of velocities."""
        kinds = [*found.residuals, found.residual], [*found.rates, found.rate]
        return ops.array([_largest(ops.concatenate(parts)) for parts in kinds])

    # --- motion ---

    def flow(self, x: Numeric, t: Numeric) -> Numeric:
        """ẋ"""
        system, equations = self.system, self.system.equations
        placed = self.poses.placements(x)
        v = self.dof_rates(placed)
        effort = self.effort - equations.friction_effort(v)
        found = self._violations_to_control(placed, t)
        solution = system.solved(placed, self._no_coordinates[0], v, effort, t, found)
        return self.poses.rate(x, solution.bodies)

    def _violations_to_control(self, placed: Sequence[Placement], t: Numeric) -> list[Numeric] | None:
        """2ω ḟ + ω² f of the rows of every joint."""
        if not self.rate:
            return None
        found = self.violations(placed, t)
        pairs = zip(found.residuals, found.rates, strict=True)
        return [2.0 * self.rate * change + self.rate**2 * residual for residual, change in pairs]

    def dof_rates(self, placed: Sequence[Placement]) -> Numeric:
        """v (nv,)"""
        return ops.array([row.rate for _, free in self.system.joint_rows(placed, 0.0) for row in free])

    def projected(self, x: Numeric, t: Numeric) -> Numeric:
        """The state after a Newton step to the position constraints, and one to the velocity constraints."""
        placed = self.poses.placements(x)
        found = self.violations(placed, t)
        x = self.poses.moved(x, self._correction(placed, t, found.residuals, self.holonomic, found.residual))
        placed = self.poses.placements(x)
        found = self.violations(placed, t)
        return self.poses.accelerated(x, self._correction(placed, t, found.rates, self.rows, found.rate))

    def _correction(
        self, placed: Sequence[Placement], t: Numeric, of_joints: list[Numeric], rows: list[int], violation: Numeric
    ) -> list[Numeric]:
        """The smallest change of every body, in the metric of M, that removes violations: of the joints, and of these
        rows of constraints."""
        system, none = self.system, np.zeros(3)
        still = [here._replace(angular=none, linear=none) for here in placed]
        local = system.body_equations(still, np.zeros(system.equations.nv_tree), t)
        local = [each.with_demand(-found, each.given * 0.0) for each, found in zip(local, of_joints, strict=True)]
        _, _, all_rows = system.equations.constraints.rows(still, *self._no_coordinates, none, t)
        given: list[ConstraintRow] = [all_rows[r]._replace(bias=f) for r, f in zip(rows, violation, strict=True)]
        forces = [np.zeros((system.coordinates.size, 1)) for _ in local]
        return system.bordered(local, still, forces, given).bodies

    def stepper(self, size: int):
        """(x, t, h) -> (x after a step of RK4, the largest violations (2,))."""
        flow = Routine(self.flow, [(size,), ()], "absolute_flow")
        project = Routine(self.projected, [(size,), ()], "absolute_projection") if self.projecting else None

        def step(x: Numeric, t: Numeric, h: Numeric) -> tuple[Numeric, Numeric]:
            k1 = flow(x, t)
            k2 = flow(x + 0.5 * h * k1, t + 0.5 * h)
            k3 = flow(x + 0.5 * h * k2, t + 0.5 * h)
            k4 = flow(x + h * k3, t + h)
            x = self.poses.normalised(x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
            if project is not None:
                x = project(x, t + h)
            return x, self.largest(self.violations(self.poses.placements(x), t + h))

        return step

    def seen(self, x: Numeric) -> tuple[Numeric, Numeric]:
        """(poses (n, 3, 4), velocities of the dofs (nv,))"""
        placed = self.poses.placements(x)
        rows = [[[*here.rotation[i], here.position[i]] for i in range(3)] for here in placed]
        return ops.array(rows).reshape(len(placed), 3, 4), self.dof_rates(placed)

    @property
    def _no_coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and velocities of joints, which nothing depends on."""
        equations = self.system.equations
        return np.zeros(sum(kind.nq for kind in equations.tree.kinds)), np.zeros(equations.nv_tree)


def _largest(values: Numeric) -> Numeric:
    largest: Numeric = 0.0
    for value in values:
        largest = ops.maximum(largest, ops.abs(value))
    return largest
