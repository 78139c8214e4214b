"""Mechanism and actuators as one continuous block (theory §2, §6, §9).

Inputs: the effort requested of each dof's drive. A prescribed dof follows its trajectory and the hybrid
dynamics gives the effort it needs; a dof without actuator or prescription is free. What events switch while a
rig runs (dofs that are held, constraints that are released) is part of the state: `switches`. A real dof, that of a
real motor, is prescribed too, with the motion that is measured: between measurements its acceleration stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cosim import ops
from cosim.layout import Layout
from cosim.multibody import Model
from cosim.multibody.assembly import ConsistentState, find_consistent_state
from cosim.multibody.mechanism import Mechanism
from cosim.plant.hybrid_modes import HybridModes
from cosim.types import State


@dataclass(frozen=True)
class LoopClosure:
    """How constraints are held: `projection` after every step, or by Baumgarte stabilisation at this rate [rad/s]."""

    projection: bool = True
    baumgarte: float = 0.0
    elimination: str = "auto"


@dataclass(frozen=True)
class Plant:
    """`actuators` and `prescribed` (trajectories of one coordinate) go by the names of dofs, as the model has them;
    guesses of position (nq,) and velocity (nv,) at the start, and which dofs (nv,) keep them when loops are closed.
    """

    mechanism: Mechanism
    gravity: Sequence[float]  # (3,) m/s²
    actuators: Mapping[str, Any]
    prescribed: Mapping[str, Any]
    position: np.ndarray = field(default_factory=lambda: np.zeros(0))
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(0))
    kept: tuple[np.ndarray, np.ndarray] | None = None  # (of positions, of velocities); None: all
    released: tuple[str, ...] = ()  # constraints that may be released
    closing: LoopClosure = LoopClosure()
    switches: HybridModes = field(default_factory=HybridModes)
    real: tuple[str, ...] = ()  # dofs that are measured
    rotors: Mapping[str, float] = field(default_factory=dict)  # reflected inertia of the drives of real dofs

    def switched(self, switches: HybridModes) -> Plant:
        """The same plant with what switches in it; where it starts need not be found again."""
        plant = replace(self, switches=switches)
        found = {name: value for name, value in self.__dict__.items() if name in ("tree", "start", "model")}
        plant.__dict__.update(found)
        return plant

    # --- the mechanism at the start ---

    @cached_property
    def tree(self) -> Model:
        """The mechanism with the rotors of its actuators."""
        rotors = {name: actuator.reflected_inertia for name, actuator in self.actuators.items()} | dict(self.rotors)
        return Model(self.mechanism, self.gravity, rotors, self.closing.baumgarte, self.closing.elimination)

    @cached_property
    def start(self) -> ConsistentState:
        """Coordinates and velocities at t = 0, loops closed. Raises InputError where they cannot be."""
        q, v = np.array(self.position, dtype=float), np.array(self.velocity, dtype=float)
        held = ~self.free
        kept_q, kept_v = self.kept or (np.ones(len(v), dtype=bool),) * 2
        for name, trajectory in self.prescribed.items():
            k, sample = self.tree.dof_index(name), trajectory.sample(0.0)
            q[self._coordinate(name)], v[k] = sample["position"][0], sample["velocity"][0]
        prescribed = tuple(self.prescribed)
        return find_consistent_state(
            self.tree, q, v, kept_q | held, kept_v | held, released=self.released, prescribed=prescribed
        )

    @property
    def start_positions(self) -> np.ndarray:
        """(nv,) of the dofs at t = 0."""
        return np.asarray(self.tree.equations.chart(self.start.q), dtype=float)

    @cached_property
    def model(self) -> Model:
        """The mechanism with rotors, without constraints that repeat others."""
        redundant = self.start.redundant
        return self.tree.without(redundant) if redundant else self.tree

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.initial())

    @cached_property
    def free(self) -> np.ndarray:
        """(nv,) of truth values: dofs whose motion is no function of time."""
        return np.array([name not in self.prescribed for name in self.tree.dof_names], dtype=bool)

    @cached_property
    def _real(self) -> np.ndarray:
        """Places of the real dofs."""
        return np.array([self.tree.dof_index(name) for name in self.real], dtype=int)

    @cached_property
    def given(self) -> np.ndarray:
        """(nv,) of truth values: dofs whose acceleration is given, by a trajectory or by what is measured."""
        return ~self.free | np.isin(np.arange(len(self.free)), self._real)

    @cached_property
    def _own(self) -> np.ndarray:
        """Places (in q) of the coordinates that are not prescribed."""
        names = self.tree.coordinate_names
        return np.array([k for k, name in enumerate(names) if name not in self.prescribed], dtype=int)

    def _coordinate(self, dof: str) -> int:
        """The place of a prescribed dof's coordinate."""
        return self.tree.coordinate_names.index(dof)

    def initial(self) -> State:
        """Coordinates and velocities that are not prescribed, the actuators' states, what was supplied and lost,
        accelerations of real dofs, and the switches."""
        q, v = self.start.q, self.start.v
        positions = self.start_positions
        actuators = {
            name: actuator.initial(positions[k], v[k])
            for name, actuator in self.actuators.items()
            for k in [self.model.dof_index(name)]
        }
        state = {
            "position": q[self._own],
            "velocity": v[self.free],
            "actuators": actuators,
            "energy": {"work": np.zeros(()), "loss": np.zeros(())},
        }
        state |= {"real": np.zeros(len(self.real))} if self.real else {}
        return state | ({"switches": self.switches.initial()} if self.switches else {})

    # --- where everything is ---

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Where coordinates stand in the flat state."""
        parts = [self.layout.index("position")]
        for name, actuator in self.actuators.items():
            parts += [self.layout.index("actuators", name, position) for position in actuator.rates]
        return np.concatenate(parts)

    def coordinate_rates(self, t: Any, x: State) -> Any:
        """The rates of these coordinates."""
        q, v, _ = self.motion(t, x)
        parts = [self.model.equations.rate(q, v)[self._own]]
        for name, actuator in self.actuators.items():
            parts += [ops.array([x["actuators"][name][rate]]) for rate in actuator.rates.values()]
        return ops.concatenate(parts)

    def motion(self, t: Any, x: State) -> tuple[Any, Any, Any]:
        """(q (nq,), v (nv,), v̇ (nv,) of the prescribed and real dofs and 0 elsewhere)."""
        q = ops.with_elements(np.zeros(self.model.nq), self._own, x["position"])
        v = ops.with_elements(np.zeros(self.model.nv), np.flatnonzero(self.free), x["velocity"])
        a = np.zeros(self.model.nv)
        if self.real:
            a = ops.with_elements(a, self._real, x["real"])
        for name, trajectory in self.prescribed.items():
            sample, k = trajectory.sample(t), self.model.dof_index(name)
            q = ops.with_elements(q, [self._coordinate(name)], sample["position"])
            v = ops.with_elements(v, [k], sample["velocity"])
            a = ops.with_elements(a, [k], sample["acceleration"])
        return q, v, a

    def held(self, x: State) -> Any:
        """(nv,) dofs whose acceleration is given: prescribed and real ones, and those that a switch holds still."""
        if not self.switches:
            return self.given
        return ops.logical_or(self.given, self.switches.held(x["switches"]) > 0.5)

    def active(self, x: State) -> Any:
        """Which couplings hold (1 or 0 each); None: all."""
        return self.switches.active(x["switches"]) if self.switches.releases else None

    def moved(self, x: State, q: Any, v: Any) -> State:
        """The state with other coordinates and velocities."""
        return x | {"position": q[self._own], "velocity": v[self.free]}

    def corrected(self, x: State, position: Any, velocity: Any, acceleration: Any) -> State:
        """The state with the real dofs moving like this, (m,) each."""
        q = ops.with_elements(np.zeros(self.model.nq), self._own, x["position"])
        v = ops.with_elements(np.zeros(self.model.nv), np.flatnonzero(self.free), x["velocity"])
        q = ops.with_elements(q, [self._coordinate(name) for name in self.real], position)
        return self.moved(x, q, ops.with_elements(v, self._real, velocity)) | {"real": acceleration}

    def observed(self, x: State) -> tuple[Any, Any, Any]:
        """(position, velocity, acceleration) (m,) of the real dofs."""
        q, v, a = self.motion(0.0, x)
        return q[[self._coordinate(name) for name in self.real]], v[self._real], a[self._real]

    def begun(self, x: State, position: np.ndarray, velocity: np.ndarray) -> State:
        """The state with the real dofs as measured, (m,) each, at rest else, and loops closed about them. Raises
        InputError where they cannot be."""
        x = self.corrected(x, position, velocity, np.zeros(len(self.real)))
        if not self.model.constraint_rows:
            return x
        q, v, _ = self.motion(0.0, x)
        given = tuple(name for name, kept in zip(self.model.dof_names, self.given, strict=True) if kept)
        found = find_consistent_state(
            self.model, q, v, self.given, self.given, released=self.released, prescribed=given
        )
        return self.moved(x, found.q, found.v)

    def settled(self, t: Any, x: State) -> State:
        """The state after a step, put back onto the constraints it drifted from."""
        q, v, _ = self.motion(t, x)
        equations = self.model.equations
        if self.closing.projection:
            return self.moved(x, *equations.project_onto_constraints(q, v, self.held(x), t, self.active(x)))
        return self.moved(x, equations.normalised(q), v)

    @property
    def drifts(self) -> bool:
        """Whether steps leave something to settle."""
        projected = bool(self.model.constraint_rows) and self.closing.projection
        return projected or self.model.nq != self.model.nv

    # --- what acts ---

    def _drive(self, t: Any, x: State, request: Any, q: Any, v: Any) -> tuple[dict[str, State], dict[str, Any]]:
        """(dx, y) of every actuator by dof."""
        chart = self.model.equations.chart(q)
        rates, outputs = {}, {}
        for name, actuator in self.actuators.items():
            k = self.model.dof_index(name)
            u = {"request": request[k], "position": chart[k], "velocity": v[k]}
            rates[name], outputs[name] = actuator.flow(t, actuator.params, x["actuators"][name], u)
        return rates, outputs

    def _driving(self, driven: Mapping[str, Any]) -> Any:
        """(nv,) efforts of the drives, 0 where there is none."""
        names = self.model.dof_names
        return ops.array([driven[n]["effort"] if n in driven else 0.0 for n in names])

    def feedback(self, t: Any, x: State, request: Any) -> tuple[Any, Any, Any]:
        """(position, velocity, effort), (nv,) each, as seen by the drives; a prescribed or free dof has none and shows
        0 effort."""
        q, v, _ = self.motion(t, x)
        _, driven = self._drive(t, x, request, q, v)
        return self.model.equations.chart(q), v, self._driving(driven)

    def efforts(self, t: Any, x: State, request: Any) -> dict[str, Any]:
        """Everything that follows from a state: q, v, a; `effort` of drives and prescriptions; `friction` of joints and
        brakes; `hold`, what it takes to hold dofs still; `multipliers` of the constraints; `put in`, the power of
        what time moves; and the actuators' `rates` and outputs (`driven`)."""
        q, v, a = self.motion(t, x)
        rates, driven = self._drive(t, x, request, q, v)
        equations = self.model.equations
        friction = equations.friction_effort(v)
        taken = friction + equations.spring_effort(q)
        effort = self._driving(driven)
        dragged = effort - taken
        if self.switches:
            braking = self.switches.braking(x["switches"])
            friction, dragged = friction - braking, dragged + braking
        held = self.held(x)
        if equations.is_plain_tree:
            a, load = equations.hybrid_dynamics(q, v, a, dragged, held, t)
            multipliers, put_in = np.zeros(0), 0.0
        else:
            a, load, multipliers, put_in = equations.constrained_dynamics(q, v, a, dragged, held, t, self.active(x))
        effort = ops.where(self.given, load + taken, effort)
        found = {"q": q, "v": v, "a": a, "effort": effort, "friction": friction, "hold": load - dragged}
        return found | {"multipliers": multipliers, "put in": put_in, "rates": rates, "driven": driven}

    def flow(self, t: Any, p: Any, x: State, u: Mapping[str, Any]) -> tuple[State, dict[str, Any]]:
        """u["request"]: (nv,). dx/dt of the state, and `effort` (nv,) on each dof."""
        found = self.efforts(t, x, u["request"])
        q, v, a, effort, driven = (found[name] for name in ("q", "v", "a", "effort", "driven"))
        equations = self.model.equations
        prescribed = np.flatnonzero(self.given)
        power = found["put in"] + ops.total(y["power"] for y in driven.values())
        power = power + ops.total(effort[k] * v[k] for k in prescribed)
        loss = ops.total(y["loss"] for y in driven.values()) + found["friction"] @ v + equations.damper_loss(q, v, t)
        dx = {
            "position": equations.rate(q, v)[self._own],
            "velocity": a[self.free],
            "actuators": found["rates"],
            "energy": {"work": power, "loss": loss},
        }
        still: State = {"switches": self.switches.still()} if self.switches else {}
        still |= {"real": np.zeros(len(self.real))} if self.real else {}
        return dx | still, {"effort": effort}

    # --- what is worth looking at ---

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """The names of what `observe` gives."""
        return tuple(self.observe(0.0, self.initial(), np.zeros(self.model.nv)))

    def observe(self, t: Any, x: State, request: Any) -> dict[str, Any]:
        """By signal name: motion and effort of every dof, what its actuator shows, reactions and gaps of the
        constraints, and the energy balance."""
        found = self.efforts(t, x, request)
        q, v, driven, model = found["q"], found["v"], found["driven"], self.model
        signals: dict[str, Any] = {}
        motion = {"position": model.equations.chart(q), "velocity": v}
        motion |= {"acceleration": found["a"], "effort": found["effort"]}
        for k, name in enumerate(model.dof_names):
            signals |= {f"{name}/{what}": values[k] for what, values in motion.items()}
            shown = [s for s in driven.get(name, {}) if s not in ("effort", "power", "loss", "stored")]
            signals |= {f"{name}/{s}": driven[name][s] for s in shown}
        coordinates = zip(model.coordinate_names, model.coordinate_units, q, strict=True)
        signals |= {f"{name}/position": value for name, unit, value in coordinates if unit == "1"}
        equations = model.equations
        for joint, pose in equations.moving_base_poses(q, t).items():
            signals |= {f"{joint}.{name}/position": value for name, value in pose.items()}
        kinetic = equations.kinetic_energy(q, v, t)
        potential = equations.potential_energy(q, t)
        elastic = equations.spring_energy(q, t)
        stored = kinetic + potential + elastic + ops.total(y["stored"] for y in driven.values())
        energies = {"kinetic": kinetic, "potential": potential, "stored": stored}
        energies |= {"elastic": elastic} if equations.has_springs else {}
        energies |= {"work": x["energy"]["work"], "dissipated": x["energy"]["loss"]}
        signals |= {f"energy/{name}": value for name, value in energies.items()}
        return signals | self._reactions(t, q, v, found["multipliers"], self.active(x))

    def _reactions(self, t: Any, q: Any, v: Any, multipliers: Any, active: Any) -> dict[str, Any]:
        """`<constraint>/force_x` and so on, and `<constraint>/violation`: how far it is from being satisfied."""
        model = self.model
        if not model.constraint_rows:
            return {}
        shared = model.equations.least_norm_reactions(q, multipliers, t, active)
        signals = dict(zip(model.constraint_rows, shared, strict=True))
        residual, rate = model.equations.constraint_violation(q, v, t)
        first = row = 0
        for k, coupling in enumerate(model.equations.constraints.members):
            holds = 1.0 if active is None else active[k]
            violation, n = residual[first : first + coupling.holonomic], len(coupling.law.rows)
            slip = rate[row + coupling.holonomic : row + n]
            if coupling.holonomic:
                signals[f"{coupling.name}/violation"] = holds * ops.sqrt(violation @ violation)
            if n > coupling.holonomic:
                signals[f"{coupling.name}/slip"] = holds * ops.sqrt(slip @ slip)
            first, row = first + coupling.holonomic, row + n
        return signals
