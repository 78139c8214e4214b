"""Mechanism and actuators as one continuous block: state, motion, efforts.

Input: the effort requested of the drive of each dof. The hybrid dynamics gives the required effort of a prescribed dof.
Discrete modes (locked dofs, released constraints) are part of the state: `modes`. The acceleration of a real dof is
constant between measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.layout import Layout, zeros_like
from cosim.core.types import ACCELERATION, SETPOINTS, Numeric, State
from cosim.mechanics.multibody.assembly import find_consistent_state
from cosim.mechanics.multibody.constrained_dynamics import Solution
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.model import Model
from cosim.simulation.plant.bristles import JointLoads
from cosim.simulation.plant.exact_contacts import ExactContacts
from cosim.simulation.plant.indicators import STANDSTILL
from cosim.simulation.plant.inertial_drives import PlantMotion
from cosim.simulation.plant.plant_description import PlantDescription


@dataclass(frozen=True)
class Plant(PlantDescription):
    """A plant: its state, and how it moves."""

    # --- what controllers know ---

    @cached_property
    def controller_model(self) -> Model:
        """The model that controllers get. Of a drive that is solved together with the mechanism it has as a rotor what
        the drive adds to the inertia of each of its joints at the start, with the others at rest."""
        known = self.model.as_known
        if not self.inertial_drives:
            return known
        added, own = self.inertial_drives.inertias(self), known.drive_rotors.values()
        return known.with_rotor_inertia(ops.array([rotor + more for rotor, more in zip(own, added, strict=True)]))

    # --- initial state ---

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.initial())

    def initial(self) -> State:
        """Coordinates and velocities that are not prescribed, states of actuators, deflections of bristles, work
        supplied and energy lost [J], accelerations of real dofs, what is known of the steps of the integrator, and the
        modes."""
        state = {
            "position": self.start.q[self._state_coordinates],
            "velocity": self.start.v[self.unprescribed],
            "actuators": self._initial_actuators(),
            "energy": {"work": np.zeros(()), "loss": np.zeros(())}
            | ({"forces": np.zeros(())} if self.has_force_laws else {})
            | ({"contacts": self.stored_at_start} if self.contacts else {})
            | ({"external": np.zeros(len(self.coupled))} if self.coupled else {})
            | ({"real": np.zeros(len(self.real))} if self.real else {}),
        }
        return state | ({"bristles": self.bristle_start} if self.bristles else {}) | self._constants()

    def external_effort(self, t: Numeric, x: State) -> Numeric:
        """(nv,) efforts from outside."""
        return self.external.at(t, x["external"], self.full_model.nv) if self.coupled else np.zeros(self.full_model.nv)

    def haptic_effort(self, t: Numeric, q: Numeric, x: State) -> Numeric:
        """(nv,) what the drives of real dofs exert for virtual contacts, beside all else; q (nq,)."""
        if not self.haptic:
            return np.zeros(self.full_model.nv)
        efforts = self.contacts.virtual_efforts(self.model.equations, t, q, x)
        return ops.where(np.isin(self.full_model.dof_names, self.haptic), efforts, 0.0)

    @cached_property
    def bristle_start(self) -> np.ndarray:
        """Deflections (n,) of bristles at t = 0."""
        q, v = self.start.q, self.start.v
        state = {"position": q[self._state_coordinates], "velocity": v[self.unprescribed]}
        state |= {"actuators": self._initial_actuators()} | self._constants()
        return np.asarray(self.holding_bristles(state), dtype=float)

    def holding_bristles(self, x: State) -> Numeric:
        """Deflections (n,) of bristles that hold the dofs at rest of a state at t = 0, without a request to the
        drives."""
        v, n = self.motion(0.0, x)[1], len(self.bristles.dofs)
        has_bristles = np.isin(np.arange(self.model.nv), self.bristles.dofs)
        held = ops.logical_and(has_bristles, ops.abs(v) <= STANDSTILL)
        # contacts have no forces before the first step; how many rows they have depends on their numbers
        x = x | {"bristles": np.zeros(n)} | ({"contacts": self.contacts.initial()} if self.moreau else {})
        solution = self.efforts(0.0, x, np.zeros(self.model.nv), held=held)
        return self.bristles.at_start(v, solution["loads"], -solution["locking_effort"])

    def _constants(self) -> State:
        """At t = 0, what is constant in continuous time."""
        constants: State = {"real": np.zeros(len(self.real))} if self.real else {}
        constants |= {"external": self.external.initial()} if self.coupled else {}
        if self.multirate:
            before = np.zeros(self.full_model.nv)  # mean acceleration of the step before
            constants["drive_steps"] = {"acceleration": before, "unconverged": np.zeros(())}
        if self.moreau:
            constants["contacts"] = self.contacts.initial()
        if self.exact:
            constants["contacts"] = self.contacts.with_counts
        constants |= {"steps": self.control.initial(self.full_model.nv)} if self.control else {}
        return constants | ({"modes": self.modes.initial()} if self.modes else {})

    # --- motion ---

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Indices of coordinates in the flat state: of joints, and positions inside actuators."""
        parts = [self.layout.index("position")]
        for name, actuator in self.drives.items():
            parts += [self.layout.index("actuators", name, position) for position in actuator.positions]
        return np.concatenate(parts)

    @cached_property
    def state_places(self) -> list[np.ndarray]:
        """Indices in the flat state of what moves each dof (nv,): its coordinates, its velocity and its actuator, which
        may move several. The four coordinates of a rotation belong to the last of its three dofs."""
        places: list[list[int]] = [[] for _ in self.model.dof_names]
        of_coordinate: list[int] = []
        first = 0
        for kind in self.model.kinds:
            of_coordinate += [first + min(k, kind.nv - 1) for k in range(kind.nq)]
            first += kind.nv
        coordinates = zip(self._state_coordinates, self.layout.index("position"), strict=True)
        velocities = zip(np.flatnonzero(self.unprescribed), self.layout.index("velocity"), strict=True)
        pairs = [*((of_coordinate[k], place) for k, place in coordinates), *velocities]
        for name in self.drives:
            where = self.layout.place("actuators", name).where
            pairs += [(dof, place) for dof in self.joints_of[name].values() for place in range(where.start, where.stop)]
        if self.bristles:
            pairs += list(zip(self.bristles.dofs, self.layout.index("bristles"), strict=True))
        for dof, place in pairs:
            places[dof].append(place)
        return [np.array(of, dtype=int) for of in places]

    @cached_property
    def energy_places(self) -> np.ndarray:
        """Indices in the flat state of the integrals of power."""
        where = self.layout.place("energy").where
        return np.arange(where.start, where.stop)

    def work_taken(self, x: State) -> Numeric:
        """(nv,) J that the mechanism has taken from the drives of its real dofs since the start; 0 for other dofs."""
        none = np.zeros(self.model.nv)
        return ops.set_at(none, self._real_dofs, x["energy"]["real"]) if self.real else none

    def coordinate_rates(self, t: Numeric, x: State, request: Numeric) -> Numeric:
        """The rates of `coordinates`, in the same order."""
        q, v, _ = self.motion(t, x)
        parts = [self.model.equations.rate(q, v)[self._state_coordinates]]
        rates = (
            self.efforts(t, x, request)["rates"]
            if self.inertial_drives
            else self.actuator_flows(t, x, request, q, v)[0]
        )
        for name, actuator in self.drives.items():
            parts += [ops.array([rates[name][position]]) for position in actuator.positions]
        return ops.concatenate(parts)

    def motion(self, t: Numeric, x: State) -> tuple[Numeric, Numeric, Numeric]:
        """(q (nq,), v (nv,), v̇ (nv,) of imposed dofs and 0 elsewhere)."""
        q = ops.set_at(np.zeros(self.model.nq), self._state_coordinates, x["position"])
        v = ops.set_at(np.zeros(self.model.nv), np.flatnonzero(self.unprescribed), x["velocity"])
        a = np.zeros(self.model.nv)
        if self.real:
            a = ops.set_at(a, self._real_dofs, x["real"])
        if self.prescribed:
            samples = [trajectory.sample(t) for trajectory in self.prescribed.values()]
            coordinates = [self._coordinate(name) for name in self.prescribed]
            dofs = [self.model.dof_index(name) for name in self.prescribed]
            kinds = ("position", "velocity", "acceleration")
            given = {kind: ops.concatenate([sample[kind] for sample in samples]) for kind in kinds}
            q = ops.set_at(q, coordinates, given["position"])
            v, a = ops.set_at(v, dofs, given["velocity"]), ops.set_at(a, dofs, given["acceleration"])
        for place in self.rotation_places:
            quaternion, omega, alpha = place.rotation.sample(t)
            q = ops.set_at(q, place.coordinates, quaternion)
            v, a = ops.set_at(v, place.dofs, omega), ops.set_at(a, place.dofs, alpha)
        return q, v, a

    def locked_or_imposed(self, x: State) -> Numeric:
        """bool (nv,): dofs whose acceleration is known: imposed ones, and those locked by a latch, brake or stop."""
        if not self.modes:
            return self.imposed
        return ops.logical_or(self.imposed, self.modes.locked(x["modes"]) > 0.5)

    def locks(self, x: State) -> Numeric:
        """(2, nv) 1 for dofs that are latched, and for those locked by a latch, brake or stop; 0 elsewhere."""
        if not self.modes:
            return np.zeros((2, self.model.nv))
        return ops.array([x["modes"]["latched"], self.modes.locked(x["modes"])])

    def active(self, x: State) -> Numeric:
        """1 for each constraint that is active, 0 for released ones; None if all are always active."""
        return self.modes.active(x["modes"]) if self.modes.releases else None

    def with_motion(self, x: State, q: Numeric, v: Numeric) -> State:
        """The state with the coordinates q (nq,) and velocities v (nv,)."""
        return x | {"position": q[self._state_coordinates], "velocity": v[self.unprescribed]}

    def with_real_motion(self, x: State, position: Numeric, velocity: Numeric, acceleration: Numeric) -> State:
        """The state with this motion of the m real dofs, (m,) each."""
        q = ops.set_at(np.zeros(self.model.nq), self._state_coordinates, x["position"])
        v = ops.set_at(np.zeros(self.model.nv), np.flatnonzero(self.unprescribed), x["velocity"])
        q = ops.set_at(q, [self._coordinate(name) for name in self.real], position)
        return self.with_motion(x, q, ops.set_at(v, self._real_dofs, velocity)) | {"real": acceleration}

    def real_motion(self, x: State) -> tuple[Numeric, Numeric, Numeric]:
        """(position, velocity, acceleration) of the m real dofs, (m,) each."""
        q, v, a = self.motion(0.0, x)
        return q[[self._coordinate(name) for name in self.real]], v[self._real_dofs], a[self._real_dofs]

    def start_from_measured(self, x: State, position: np.ndarray, velocity: np.ndarray) -> State:
        """The state with the measured position and velocity of the m real dofs, (m,) each, and with closed loops.

        Raises InputError if the loops cannot close."""
        x = self.with_real_motion(x, position, velocity, np.zeros(len(self.real)))
        x = x | {"contacts": self.contacts.initial()} if self.haptic else x
        at = dict(zip(self.real, zip(position, velocity, strict=True), strict=True))
        x = x | {"actuators": x["actuators"] | {name: twin.initial(*at[name]) for name, twin in self.twins.items()}}
        if not self.model.constraint_rows:
            return x
        q, v, _ = self.motion(0.0, x)
        imposed = tuple(name for name, is_so in zip(self.model.dof_names, self.imposed, strict=True) if is_so)
        consistent = find_consistent_state(
            self.model, q, v, self.imposed, self.imposed, released=self.released, prescribed=imposed
        )
        return self.with_motion(x, consistent.q, consistent.v)

    # --- velocities along axes that turn within a step ---

    def transport(self, x: State, v: Numeric) -> Numeric:
        """(nv,) the part of v̇ that comes from the turning of the axes of v alone; 0 of dofs whose motion is given."""
        return ops.where(self.locked_or_imposed(x), 0.0, self.model.equations.transport(v))

    def turned(self, x: State, v: Numeric, d: Numeric) -> Numeric:
        """v (nv,) along the axes after a displacement d (nv,); of dofs whose motion is given, v itself."""
        return ops.where(self.locked_or_imposed(x), v, self.model.equations.turned(v, d))

    def correct_drift(self, t: Numeric, x: State) -> State:
        """The state after a step, projected onto the constraints, with quaternions of length 1."""
        q, v, _ = self.motion(t, x)
        equations = self.model.equations
        if self.loop_closure.projection:
            return self.with_motion(
                x, *equations.project_onto_constraints(q, v, self.locked_or_imposed(x), t, self.active(x))
            )
        return self.with_motion(x, equations.normalised(q), v)

    # --- dynamics ---

    @cached_property
    def exact_contacts(self) -> ExactContacts:
        return ExactContacts(self)

    def mobility_matrix(self, t: float, x: State) -> np.ndarray:
        """(nv, nv) accelerations per effort in a state, 0 of and by dofs whose motion is given: the inverse of the mass
        matrix, less what the constraints take, W − W Gᵀ (G W Gᵀ)⁺ G W."""
        q, _, a = self.motion(t, x)
        equations = self.model.equations
        free = np.flatnonzero(~np.asarray(self.locked_or_imposed(x), dtype=bool))
        W, mass = np.zeros((self.model.nv, self.model.nv)), np.asarray(equations.mass_matrix(q, t), dtype=float)
        if self.inertial_drives:
            mass = mass + self.inertial_drives.matrix(self, t, x, a)
        W[np.ix_(free, free)] = np.linalg.inv(mass[np.ix_(free, free)])
        if self.model.constraint_rows:
            G = np.asarray(equations.constraint_jacobian(q, t), dtype=float)
            if (active := self.active(x)) is not None:
                G = G * np.asarray(active)[equations.constraints.owners][:, None]
            W = W - W @ G.T @ np.linalg.pinv(G @ W @ G.T) @ G @ W
        return W

    def actuator_flows(
        self, t: Numeric, x: State, request: Numeric, q: Numeric, v: Numeric, a: Numeric | None = None
    ) -> tuple[dict[str, State], dict[str, State]]:
        """(dx, y) of every actuator by name; a (nv,): accelerations for those that take them, by default 0."""
        rates, outputs = {}, {}
        for name, actuator in self.drives.items():
            u = self.inputs_of(name, request, self.model.equations.chart(q), v, a)
            rates[name], outputs[name] = actuator.flow(t, actuator.params, x["actuators"][name], u)
        return rates, outputs

    def inputs_of(
        self, name: str, request: Numeric, chart: Numeric, v: Numeric, a: Numeric | None
    ) -> dict[str, Numeric]:
        """The inputs of an actuator."""
        u = {}
        takes_acceleration = getattr(self.drives[name], "follows_acceleration", False)
        for before, k in self.joints_of[name].items():
            u |= {f"{before}request": request[k], f"{before}position": chart[k], f"{before}velocity": v[k]}
            if a is not None and takes_acceleration:
                u[before + ACCELERATION] = a[k]
        return u

    def sample(
        self, t: Numeric, x: State, request: Numeric, setpoints: Sequence[Numeric], dofs: Sequence[str]
    ) -> State:
        """The state after the sampled parts of the actuators of these dofs were updated. setpoints: (nv,) for each of
        SETPOINTS."""
        q, v, _ = self.motion(t, x)
        chart, states = self.model.equations.chart(q), dict(x["actuators"])
        for dof in dofs:
            (name, before, part), k = self.sampled_joints[dof], self.model.dof_index(dof)
            u = self.inputs_of(name, request, chart, v, None)
            u |= {before + what: values[k] for what, values in zip(SETPOINTS, setpoints, strict=True)}
            if self.modes.switches:
                disabled = x["modes"]["disabled"][k] > 0.5
                u[f"{before}enabled"] = ops.where(disabled, 0.0, u[f"{before}enabled"])
            states[name] = states[name] | part.update(t, self.drives[name].params, states[name], u)
        return x | {"actuators": states}

    def actuator_efforts(self, outputs: Mapping[str, Numeric]) -> Numeric:
        """(nv,) efforts of the actuators, 0 for dofs without one."""
        efforts: list[Numeric] = [0.0] * self.model.nv
        for name in (*self.actuators, *self.shared):
            for before, k in self.joints_of[name].items():
                efforts[k] = outputs[name][f"{before}effort"]
        return ops.array(efforts)

    def feedback(self, t: Numeric, x: State, request: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """(position, velocity, effort), (nv,) each, at the drives; the effort of a dof without actuator is 0."""
        q, v, _ = self.motion(t, x)
        if self.inertial_drives:
            outputs = self.efforts(t, x, request)["outputs"]
        else:
            _, outputs = self.actuator_flows(t, x, request, q, v)
        return self.model.equations.chart(q), v, self.actuator_efforts(outputs)

    def efforts(
        self,
        t: Numeric,
        x: State,
        request: Numeric,
        acceleration: Numeric | None = None,
        held: Numeric | None = None,
    ) -> dict[str, Numeric]:
        """All forces and accelerations of a state: q, v, a; `effort` of actuators and of imposed motions, and in the
        latter `haptic_effort`, see there; `friction` of joints and brakes; `braking_effort` of slipping brakes,
        `static_effort` of sticking ones; `locking_effort`, that
        keeps locked dofs at rest; `multipliers` of the constraints; `input_power` [W] of constraints that depend on
        time; `rates` and `outputs` of the actuators; `joint_friction` without brakes; `bristle_rates`, and the
        `bristle_power` [W] that they store; `loads` of the joints, by which their friction grows; `pushes`, forces of
        the points of contact.

        acceleration (nv,): of a plain tree, to be taken instead of the one that solves the equations of motion. What
        they then lack is the `locking_effort` of the dofs that are not locked. held: bool (nv,), dofs that are locked
        too.
        """
        q, v, a = self.motion(t, x)
        known = self.locked_or_imposed(x)
        known = known if held is None else ops.logical_or(known, held)
        a = a if acceleration is None else ops.where(known, a, acceleration)
        rates, outputs = self.actuator_flows(t, x, request, q, v, a if self.inertial_drives else None)
        equations = self.model.equations
        effort = self.actuator_efforts(outputs)
        z = x["bristles"] if self.bristles else np.zeros(0)
        external = self.external_effort(t, x)
        loads = JointLoads(effort, self._external_load(t, q, v, external))
        friction = equations.friction_effort(v, self.bristles.dry_efforts(v, loads, z))
        bristle_rates = self.bristles.rates(v, loads, z)
        of_joints = {"joint_friction": friction, "bristle_rates": bristle_rates, "loads": loads}
        resistance = friction - external
        if not self.exact:
            resistance = resistance - self.contacts.efforts(equations, t, q, x)
        applied = effort - resistance
        of_brakes: dict[str, Numeric] = {}
        if self.modes.brakes:
            of_brakes = self.modes.brakes.efforts(t, x["modes"], equations.chart(q), v)
            braking = of_brakes["braking_effort"]
            friction, applied = friction - braking, applied + braking
        multipliers, input_power = np.zeros(0), 0.0
        at, touching = PlantMotion(t, x, q, v, known, freely=held is None), dict[str, Numeric]()
        if acceleration is not None:
            load = equations.inverse_dynamics(q, v, a, t)
        elif self.inertial_drives:
            found, effort = self.inertial_drives.solved(self, at, request, a, applied - effort)
            (a, load, multipliers, input_power), applied = found, applied - self.actuator_efforts(outputs) + effort
            rates, outputs = self.actuator_flows(t, x, request, q, v, a)
            effort = self.actuator_efforts(outputs)
        elif self.exact:
            (a, load, multipliers, input_power), touching = self.exact_contacts.accelerated(at, a, applied)
        else:
            a, load, multipliers, input_power = self.accelerated(equations, at, a, applied)
        haptic = self.haptic_effort(t, q, x)
        required = load + resistance + haptic if self.haptic else load + resistance
        effort = ops.where(self.imposed, required, effort)
        solution = {"q": q, "v": v, "a": a, "effort": effort, "friction": friction, "locking_effort": load - applied}
        solution |= {"external": external, "haptic_effort": haptic}
        solution["pushes"] = x["contacts"]["force"] if self.contacts else np.zeros(0)
        return (
            solution
            | touching
            | of_joints
            | of_brakes
            | {"multipliers": multipliers, "input_power": input_power, "rates": rates, "outputs": outputs}
            | {"bristle_power": self.bristles.stored_power(z, bristle_rates)}
        )

    def _external_load(self, t: Numeric, q: Numeric, v: Numeric, external: Numeric) -> Numeric:
        """(nv,) efforts on the dofs of all but drives, friction and inertia, where friction depends on them, else 0;
        external (nv,): from outside."""
        none = np.zeros(self.full_model.nv)
        if not self.bristles.of_external:
            return none
        return external - self.model.equations.inverse_dynamics(q, v, none, t)

    def accelerated(self, equations: MechanismEquations, at: PlantMotion, a: Numeric, applied: Numeric) -> Solution:
        """What these equations of motion determine; a (nv,): of known dofs; applied (nv,): efforts."""
        t, x, q, v, known, freely = at
        if equations.is_plain_tree:
            a, load = equations.hybrid_dynamics(q, v, a, applied, known, t)
            found = Solution(a, load, np.zeros(0), 0.0)
        else:
            found = equations.constrained_dynamics(q, v, a, applied, known, t, self.active(x))
        if self.other_formulation is not None and freely:
            found = found._replace(acceleration=self.other_formulation.forward_dynamics(q, v, applied, t))
        return found

    def flow(self, t: Numeric, p: Numeric, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """(dx/dt of the state, `effort` (nv,) on each dof); u["request"] (nv,): effort requested of the drives."""
        solution = self.efforts(t, x, u["request"])
        return self._rates(t, x, solution), {"effort": solution["effort"]}

    def balance(self, t: Numeric, x: State, request: Numeric, acceleration: Numeric) -> tuple[State, Numeric]:
        """(dx/dt, residual (m,)) of a plain tree whose m dofs that are not prescribed have these accelerations (m,).
        Where the residual of the equations of motion vanishes, dx/dt equals `flow`."""
        dofs = np.flatnonzero(self.unprescribed)
        given = ops.set_at(np.zeros(self.model.nv), dofs, acceleration)
        solution = self.efforts(t, x, request, given)
        residual = ops.where(self.locked_or_imposed(x), given - solution["a"], solution["locking_effort"])
        return self._rates(t, x, solution), residual[dofs]

    def _rates(self, t: Numeric, x: State, solution: Mapping[str, Numeric]) -> State:
        """dx/dt from the efforts and accelerations of a state x."""
        q, v, a, effort, outputs = (solution[name] for name in ("q", "v", "a", "effort", "outputs"))
        equations = self.model.equations
        power = solution["input_power"] + ops.sum(y["power"] for y in outputs.values())
        # what drives exert for virtual contacts does no work on the mechanism, which is in contact itself
        exerted = effort - solution["haptic_effort"] if self.haptic else effort
        power = power + ops.sum(exerted[k] * v[k] for k in np.flatnonzero(self.imposed))
        loss = ops.sum(y["loss"] for y in outputs.values()) + solution["friction"] @ v + equations.damper_loss(q, v, t)
        loss = loss - solution["bristle_power"] if self.bristles else loss
        dx = {
            "position": equations.rate(q, v)[self._state_coordinates],
            "velocity": a[self.unprescribed],
            "actuators": solution["rates"],
            "energy": {"work": power, "loss": loss},
        } | ({"bristles": solution["bristle_rates"]} if self.bristles else {})
        if self.has_force_laws:
            dx["energy"]["forces"] = ops.sum(equations.force_powers(q, v, t).values())
        if self.contacts:
            dx["energy"]["contacts"] = np.zeros(len(self.contacts.contacts.members))
        if self.coupled:
            dx["energy"]["external"] = ops.array([solution["external"][k] * v[k] for k in self.external.dofs])
        if self.real:
            dx["energy"]["real"] = ops.array([effort[k] * v[k] for k in self._real_dofs])
        dx |= zeros_like(self._constants())
        if self.exact:
            dx["energy"]["contacts"], counted = self.exact_contacts.powers(x, solution)
            dx["contacts"] = dx["contacts"] | counted
        return dx
