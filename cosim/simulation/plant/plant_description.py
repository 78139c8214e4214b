"""What a plant consists of: a mechanism, its drives, motions that are given, and a consistent start.

A prescribed dof follows its trajectory. A dof with neither actuator nor trajectory is passive. A real dof, one with a
real motor, follows its measured motion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self, cast

import numpy as np

from cosim.core import ops
from cosim.core.types import Actuator, Numeric, SampledPart, SharedActuator, State, Trajectory, TripLimit, breaks_of
from cosim.mechanics.formulations import SEPARATE_BODIES, Formulation, load_formulation
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import ConsistentState, find_consistent_state
from cosim.mechanics.multibody.contact.contact_solver import SolverBounds
from cosim.mechanics.multibody.contact_dynamics import ContactDynamics, GivenMotionAndEffort, MotionState
from cosim.mechanics.multibody.given_rotation import GivenRotation
from cosim.mechanics.multibody.mechanism import GivenMotion, Mechanism
from cosim.mechanics.multibody.misaligned_axes import describe_inexact
from cosim.simulation.plant.breaks import Breaks, GivenSample, first_time, jumps_at, motion_of, motion_of_rotation
from cosim.simulation.plant.bristles import Bristles
from cosim.simulation.plant.contact_state import ContactState
from cosim.simulation.plant.external_efforts import ExternalEfforts
from cosim.simulation.plant.hybrid_modes import HybridModes
from cosim.simulation.plant.inertial_drives import InertialDrives
from cosim.simulation.plant.prescribed_rotation import RotationPlace, TurnedDof
from cosim.simulation.plant.step_control import StepControl


@dataclass(frozen=True)
class LoopClosure:
    """How drift from constraints is corrected: by `projection` after every step, or by Baumgarte stabilisation at this
    rate [rad/s]; and where constraints are eliminated, see `Model`."""

    projection: bool = True
    baumgarte: float = 0.0
    elimination: str = "auto"


class SharedDrive(NamedTuple):
    """A drive of several joints. joints: what the names of its inputs begin with -> dof."""

    actuator: SharedActuator
    joints: Mapping[str, str]

    @property
    def rotor_inertias(self) -> dict[str, Numeric]:
        """Dof -> inertia that turns rigidly with it [kg m² or kg]."""
        return {dof: self.actuator.reflected[before] for before, dof in self.joints.items()}


class SampledJoint(NamedTuple):
    """The sampled part of the drive of a joint. drive: name of the drive; before: what the names of the joint's inputs
    begin with."""

    drive: str
    before: str
    part: SampledPart


@dataclass(frozen=True)
class PlantDescription:
    """The description of a plant. actuators, prescribed: actuators and trajectories (of one coordinate) by dof name of
    the model. position (nq,), velocity (nv,): guesses of the initial state. kept: bool (nv,) twice, dofs whose guess
    stays when loops are closed.
    """

    mechanism: Mechanism
    gravity: Sequence[float]  # (3,) m/s²
    actuators: Mapping[str, Actuator]
    prescribed: Mapping[str, Trajectory]
    shared: Mapping[str, SharedDrive] = field(default_factory=dict)  # drives of several joints, by a name of their own
    position: np.ndarray = field(default_factory=lambda: np.zeros(0))
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(0))
    kept: tuple[np.ndarray, np.ndarray] = field(
        default_factory=lambda: (np.zeros(0, bool), np.zeros(0, bool))
    )  # of positions, of velocities
    released: tuple[str, ...] = ()  # constraints that may be released
    loop_closure: LoopClosure = LoopClosure()
    modes: HybridModes = field(default_factory=HybridModes)
    real: tuple[str, ...] = ()  # dofs with a real motor
    rotors: Mapping[str, float] = field(default_factory=dict)  # reflected inertia of the drives of real dofs
    # of real dofs: their drives, simulated beside them; what they exert does not act on the mechanism
    twins: Mapping[str, Actuator] = field(default_factory=dict)
    control: StepControl | None = None  # of integrators that estimate their error
    multirate: bool = False  # whether the drives take steps of their own
    moreau: bool = False  # whether steps are those of `ContactStep`
    contact_bounds: SolverBounds = field(default_factory=SolverBounds)  # of the solver in these steps
    exact: bool = False  # whether the instants of contacts are events
    coupled: tuple[str, ...] = ()  # dofs with an effort from outside
    haptic: tuple[str, ...] = ()  # real dofs whose drives exert the forces of virtual contacts
    rotations: Mapping[str, GivenRotation] = field(default_factory=dict)  # of prescribed spherical joints, by joint
    formulation: str = SEPARATE_BODIES  # of the equations of motion; another one if all dofs are free at all times

    def with_modes(self, modes: HybridModes) -> Self:
        """The same plant with these modes; its initial state is not solved for again."""
        return self._sharing(("full_model", "start", "model"), replace(self, modes=modes))

    def starting_at(self, position: np.ndarray, velocity: np.ndarray, kept: tuple[np.ndarray, np.ndarray]) -> Self:
        """The same plant with other guesses of the initial state, see `PlantDescription`."""
        return self._sharing(
            ("full_model", "model", "stored_at_start"), replace(self, position=position, velocity=velocity, kept=kept)
        )

    def with_prescribed(self, prescribed: Mapping[str, Trajectory]) -> Self:
        """The same plant with other trajectories of its prescribed dofs, from the same start."""
        return self._sharing(("full_model", "start", "model"), replace(self, prescribed=prescribed))

    def with_numbers(self, mechanism: Mechanism, actuators: Mapping[str, Actuator]) -> Self:
        """The same plant with other numbers, or symbols, in the same mechanism and drives; its initial state is not
        solved for again."""
        model = self.full_model
        assumed = {name: float(J) for name, J in zip(model.dof_names, model.assumed_inertia, strict=True) if J}
        changed = replace(self, mechanism=mechanism, actuators=actuators, rotors={**assumed, **self.rotors})
        # a run has the same signals with every number, and the energy of its start is no symbol
        _ = self.measured_efforts, self.stored_at_start
        return self._sharing(("start", "bristle_start", "measured_efforts", "stored_at_start"), changed)

    def _sharing(self, solved: Sequence[str], plant: Self) -> Self:
        """plant, with what this one has computed already."""
        plant.__dict__.update({name: value for name, value in self.__dict__.items() if name in solved})
        return plant

    # --- models and start ---

    @property
    def rotor_inertias(self) -> dict[str, Numeric]:
        """Dof -> inertia of what its drive turns rigidly [kg m² or kg]."""
        rotors = {name: actuator.reflected_inertia for name, actuator in self.actuators.items()} | dict(self.rotors)
        for drive in self.shared.values():
            rotors |= drive.rotor_inertias
        return rotors

    @cached_property
    def full_model(self) -> Model:
        """The mechanism with the rotors of its actuators and with all its constraints."""
        closure = self.loop_closure
        return Model(self.mechanism, self.gravity, self.rotor_inertias, closure.baumgarte, closure.elimination)

    @cached_property
    def rotors_of_drives(self) -> dict[int, Numeric]:
        """Dof -> inertia of what the simulated drive turns rigidly with it, as a part of the mechanism; those of 0 are
        left out."""
        rotors = {name: actuator.reflected_inertia for name, actuator in self.actuators.items()}
        for drive in self.shared.values():
            rotors |= {dof: drive.actuator.reflected[before] for before, dof in drive.joints.items()}
        return {self.full_model.dof_index(name): J for name, J in rotors.items() if not ops.is_zero(J)}

    @cached_property
    def measured_efforts(self) -> frozenset[int]:
        """The dofs of which it is recorded what the drive reports, beside the effort on the joint."""
        return frozenset(self.rotors_of_drives)

    @cached_property
    def start(self) -> ConsistentState:
        """Coordinates and velocities at t = 0 with closed loops. Raises InputError if there are none."""
        q, v = np.array(self.position, dtype=float), np.array(self.velocity, dtype=float)
        fixed = ~self.unprescribed
        kept_q, kept_v = self.kept
        for name, trajectory in self.prescribed.items():
            k, sample = self.full_model.dof_index(name), trajectory.sample(first_time(trajectory))
            q[self._coordinate(name)], v[k] = sample["position"][0], sample["velocity"][0]
        for place in self.rotation_places:
            q[place.coordinates] = place.rotation.sample(0.0)[0]
            v[place.dofs] = place.rotation.sample(first_time(place.rotation))[1]
        prescribed = tuple(name for name in self.full_model.dof_names if name in self.prescribed_dofs)
        return find_consistent_state(
            self.full_model, q, v, kept_q | fixed, kept_v | fixed, released=self.released, prescribed=prescribed
        )

    @property
    def start_positions(self) -> np.ndarray:
        """(nv,) positions of the dofs at t = 0."""
        return np.asarray(self.full_model.equations.chart(self.start.q), dtype=float)

    @property
    def immobile(self) -> str | None:
        """Place, reason and fix if the constraints leave no degree of freedom, else None."""
        last = self.start.immobile
        if last is None:
            return None
        what = f"'{last.name}' takes the last degree of freedom: nothing can move"
        return f"{last.place}: {what}; take out a loop or a constraint, or use joints with more dofs"

    @cached_property
    def misaligned(self) -> list[str]:
        """Of each loop of which rows follow from the others only within the tolerance of a drawing: its place, the axes
        that are not quite parallel or at a right angle, and the rows that are left out."""
        return [f"{loop.place}: {what}" for loop, what in describe_inexact(self.model, self.start.q)]

    @cached_property
    def model(self) -> Model:
        """The mechanism with rotors, without redundant constraint rows."""
        redundant = self.start.redundant
        return self.full_model.without(redundant, self.start.inexact) if redundant else self.full_model

    @cached_property
    def other_formulation(self) -> Formulation | None:
        """The formulation that gives the accelerations, None for the separate bodies. Raises InputError if it does not
        exist or cannot treat the mechanism."""
        if self.formulation == SEPARATE_BODIES:
            return None
        return load_formulation(self.formulation, self.model.equations, "mechanism.formulation")

    @property
    def drifts(self) -> bool:
        """Whether a step of the integrator drifts from constraints or from quaternions of length 1."""
        projected = bool(self.model.constraint_rows) and self.loop_closure.projection
        return projected or self.model.nq != self.model.nv

    # --- dofs ---

    @cached_property
    def rotation_places(self) -> list[RotationPlace]:
        """Of the prescribed spherical joints."""
        model, found, nq, nv = self.full_model, list[RotationPlace](), 0, 0
        for joint, kind in zip(model.joints, model.kinds, strict=True):
            if joint.name in self.rotations:
                places = np.arange(nq, nq + kind.nq), np.arange(nv, nv + kind.nv)
                found.append(RotationPlace(self.rotations[joint.name], *places))
            nq, nv = nq + kind.nq, nv + kind.nv
        return found

    @cached_property
    def prescribed_by_dof(self) -> dict[str, Trajectory]:
        """The trajectory of every prescribed dof; of a spherical joint the position is its rotation vector."""
        names = self.full_model.dof_names
        parts = {names[k]: TurnedDof(p.rotation, i) for p in self.rotation_places for i, k in enumerate(p.dofs)}
        return {**self.prescribed, **parts}

    @cached_property
    def prescribed_dofs(self) -> frozenset[str]:
        return frozenset(self.prescribed_by_dof)

    @cached_property
    def unprescribed(self) -> np.ndarray:
        """bool (nv,): dofs without a prescribed motion."""
        return np.array([name not in self.prescribed_dofs for name in self.full_model.dof_names], dtype=bool)

    @cached_property
    def _real_dofs(self) -> np.ndarray:
        """Indices of the real dofs (in v)."""
        return np.array([self.full_model.dof_index(name) for name in self.real], dtype=int)

    @cached_property
    def imposed(self) -> np.ndarray:
        """bool (nv,): dofs whose motion is imposed by a trajectory or by a measurement."""
        return ~self.unprescribed | np.isin(np.arange(len(self.unprescribed)), self._real_dofs)

    @cached_property
    def _state_coordinates(self) -> np.ndarray:
        """Indices (in q) of the coordinates that are not prescribed: those in the state."""
        given = {self._coordinate(name) for name in self.prescribed}
        given.update(k for place in self.rotation_places for k in place.coordinates.tolist())
        return np.array([k for k in range(self.full_model.nq) if k not in given], dtype=int)

    @property
    def state_coordinate_names(self) -> tuple[str, ...]:
        """Of the coordinates in the state."""
        return tuple(self.model.coordinate_names[k] for k in self._state_coordinates)

    def _coordinate(self, dof: str) -> int:
        """The index (in q) of the coordinate of a dof."""
        return self.full_model.coordinate_names.index(dof)

    def mobility(self, dofs: Sequence[int]) -> float:
        """The largest acceleration [rad/s² or m/s²] of one of the dofs by an effort of 1 on it, at the start."""
        q, rest, known = self.start.q, np.zeros(self.model.nv), self.imposed

        def acceleration(effort: np.ndarray) -> np.ndarray:
            equations = self.model.equations
            if equations.is_plain_tree:
                return np.asarray(equations.hybrid_dynamics(q, rest, rest, effort, known, 0.0)[0], dtype=float)
            return np.asarray(equations.constrained_dynamics(q, rest, rest, effort, known, 0.0, None)[0], dtype=float)

        units = np.eye(self.model.nv)
        return max(float(abs(acceleration(units[k]) - acceleration(rest))[k]) for k in dofs)

    # --- given functions of time ---

    @cached_property
    def breaks(self) -> Breaks:
        """Of prescribed dofs, and of joints, constraints and force laws that depend on time."""
        mechanism, found = self.mechanism, list[tuple[float, bool]]()
        for trajectory in self.prescribed.values():
            found += _breaks_of_motion(trajectory, motion_of(trajectory))
        for rotation in self.rotations.values():
            found += _breaks_of_motion(rotation, motion_of_rotation(rotation))
        for joint in (*mechanism.joints, *(loop.joint for loop in mechanism.loops)):
            if isinstance(joint.motion, GivenMotion):
                found += _breaks_of_motion(joint.motion, joint.motion.sample)
            elif joint.motion is not None:
                found += [(float(time), True) for time in breaks_of(joint.motion)]
        for constraint in mechanism.constraints:
            found += [(float(time), True) for time in breaks_of(constraint.law)]
        for force in mechanism.forces:
            found += [(float(time), False) for time in breaks_of(force.law)]
        return Breaks.of(found)

    # --- what acts on them ---

    @cached_property
    def drives(self) -> dict[str, Actuator]:
        """Every simulated drive by dof or by its own name: those that move the mechanism, and the twins of real
        ones."""
        return {**self.actuators, **self.twins, **{name: drive.actuator for name, drive in self.shared.items()}}

    @cached_property
    def joints_of(self) -> dict[str, dict[str, int]]:
        """Drive -> of each of its joints what the names of its inputs begin with, and the index of the dof."""
        of_shared = {name: drive.joints for name, drive in self.shared.items()}
        names = {**{name: {"": name} for name in (*self.actuators, *self.twins)}, **of_shared}
        return {
            drive: {before: self.model.dof_index(dof) for before, dof in joints.items()}
            for drive, joints in names.items()
        }

    @cached_property
    def actuated(self) -> frozenset[str]:
        """Dofs that a simulated drive moves."""
        return frozenset((*self.actuators, *(dof for drive in self.shared.values() for dof in drive.joints.values())))

    @cached_property
    def inertial_drives(self) -> InertialDrives:
        """The drives that are solved together with the mechanism."""
        return InertialDrives.of({name: drive for name, drive in self.drives.items() if name not in self.twins})

    def _initial_actuators(self) -> dict[str, State]:
        positions, v = self.start_positions, self.start.v
        found = {}
        for name, actuator in self.drives.items():
            dofs = list(self.joints_of[name].values())
            found[name] = actuator.initial(*(x[dofs] if name in self.shared else x[dofs[0]] for x in (positions, v)))
        return found

    @cached_property
    def sampled_joints(self) -> dict[str, SampledJoint]:
        """Dof -> the sampled part of its actuator."""
        found = {}
        for name, actuator in self.drives.items():
            parts = getattr(actuator, "sampled", {}) if name in self.shared else {"": actuator}
            for before, part in parts.items():
                if getattr(part, "period", None) is not None:
                    dof = self.shared[name].joints[before] if name in self.shared else name
                    found[dof] = SampledJoint(name, before, cast(SampledPart, part))
        return found

    @cached_property
    def trips(self) -> list[tuple[str, TripLimit]]:
        """(name of the actuator, each of its limits)."""
        return [(name, limit) for name in self.shared for limit in getattr(self.drives[name], "trips", ())]

    @cached_property
    def periods(self) -> dict[str, float]:
        """Dof -> period [s] of the sampled part of its actuator."""
        return {dof: joint.part.period for dof, joint in self.sampled_joints.items()}

    @cached_property
    def drive_controlled(self) -> frozenset[str]:
        """Dofs whose simulated drives close a velocity or position loop themselves."""
        modes = {dof: getattr(joint.part, "mode", "effort") for dof, joint in self.sampled_joints.items()}
        return frozenset(dof for dof, mode in modes.items() if mode != "effort" and dof not in self.twins)

    @cached_property
    def bristles(self) -> Bristles:
        """Dry friction that depends on more than the velocity."""
        return Bristles(self.model.equations.friction_laws, frozenset(self._real_dofs.tolist()))

    @cached_property
    def external(self) -> ExternalEfforts:
        """The efforts from outside, in the order of `coupled`."""
        return ExternalEfforts([self.full_model.dof_index(name) for name in self.coupled])

    @cached_property
    def contacts(self) -> ContactState:
        return ContactState(self.full_model.equations.constraints.contacts, self.full_model.nv, self.contact_bounds)

    @cached_property
    def stored_at_start(self) -> np.ndarray:
        """(m,) in the springs of contacts whose shapes are in each other at t = 0 [J]."""
        if not self.contacts:
            return np.zeros(0)
        state = {"contacts": self.contacts.none}
        return np.asarray(self.contacts.stored_energy(self.model.equations, 0.0, self.start.q, state), dtype=float)

    @property
    def contact_mobility(self) -> np.ndarray:
        """W (3 k, 3 k) of the k points at the start [1/kg]; see `ContactDynamics`."""
        none, known = np.zeros(self.model.nv), self.imposed
        motion = MotionState(0.0, self.start.q, self.start.v)
        found = ContactDynamics.of(self.model.equations, motion, GivenMotionAndEffort(none, none, known))
        return np.asarray(found.inertia, dtype=float)

    @property
    def has_force_laws(self) -> bool:
        return bool(self.mechanism.forces)


def _breaks_of_motion(given: object, sample: GivenSample) -> list[tuple[float, bool]]:
    """The breaks of a given motion, and whether its velocity jumps there."""
    times = breaks_of(given)
    return [(float(time), bool(jumps)) for time, jumps in zip(times, jumps_at(times, sample)[1], strict=True)]
