"""Drives and mechanism solved together: drives whose efforts and rates are affine in the accelerations of their joints,

    M q̈ + h = τ + e − B q̈,    ẋ = c + D q̈.

The diagonal of B joins the rotor inertias of the columns, so the sweep stays O(n). What a drive of m joints has beside
the diagonal, B′, is a `CoupledInertia` along its joints, which takes m + 1 sweeps more. Another formulation of the
equations of motion takes no further rotors: there B′ is all of B. Where B is constant piece by piece, as with friction
that grows with a torque, it is taken at the accelerations found before (Newton's method, which is exact once the
pieces are).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Protocol, cast

import numpy as np

from cosim.core import ops
from cosim.core.types import Actuator, InertialActuator, Numeric, State
from cosim.mechanics.formulations import Formulation
from cosim.mechanics.multibody.constrained_dynamics import Solution
from cosim.mechanics.multibody.coupled_inertia import CoupledInertia
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.model import Model

PASSES = 4  # where B is constant piece by piece


class PlantMotion(NamedTuple):
    """A motion of the plant. known: bool (nv,), dofs whose acceleration is known; freely: whether another formulation
    may give the accelerations."""

    t: Numeric
    x: State
    q: Numeric
    v: Numeric
    known: Numeric
    freely: bool


class PlantWithDrives(Protocol):
    """What is used of a `Plant`."""

    @cached_property
    def model(self) -> Model: ...
    @cached_property
    def joints_of(self) -> dict[str, dict[str, int]]: ...
    @cached_property
    def other_formulation(self) -> Formulation | None: ...
    def initial(self) -> State: ...
    def motion(self, t: Numeric, x: State) -> tuple[Numeric, Numeric, Numeric]: ...
    def inputs_of(
        self, name: str, request: Numeric, chart: Numeric, v: Numeric, a: Numeric | None
    ) -> dict[str, Numeric]: ...
    def actuator_flows(
        self, t: Numeric, x: State, request: Numeric, q: Numeric, v: Numeric, a: Numeric | None = None
    ) -> tuple[dict[str, State], dict[str, State]]: ...
    def actuator_efforts(self, outputs: Mapping[str, Numeric]) -> Numeric: ...
    def accelerated(self, equations: MechanismEquations, at: PlantMotion, a: Numeric, applied: Numeric) -> Solution: ...


def rotor_of(drive: Actuator, position: float) -> Numeric:
    """What a drive adds to the inertia of its joint at rest in this position, for the model of a joint with a real
    motor [kg m² or kg]."""
    if not getattr(drive, "is_inertial", False):
        return drive.reflected_inertia
    inertial, u = cast(InertialActuator, drive), {"request": 0.0, "position": position, "velocity": 0.0}
    B, _ = inertial.by_acceleration(0.0, drive.params, drive.initial(position, 0.0), u)
    return drive.reflected_inertia + B[0, 0]


class Slopes(NamedTuple):
    """B of all drives: its diagonal (nv,), and the rest B′ along the joints of drives of several joints."""

    diagonal: Numeric
    beside: CoupledInertia

    @classmethod
    def apart(cls, nv: int, blocks: list[tuple[list[int], Numeric]]) -> Slopes:
        """The diagonal of the blocks apart from the rest."""
        diagonal: Numeric = np.zeros(nv)
        for dofs, B in blocks:
            diagonal = ops.set_at(diagonal, dofs, [diagonal[dof] + B[k, k] for k, dof in enumerate(dofs)])
        rest = [(dofs, B * (1.0 - np.eye(len(dofs)))) for dofs, B in blocks if len(dofs) > 1]
        return cls(diagonal, _side_by_side(nv, rest))

    @classmethod
    def together(cls, nv: int, blocks: list[tuple[list[int], Numeric]]) -> Slopes:
        """All of the blocks as B′."""
        return cls(np.zeros(nv), _side_by_side(nv, blocks))

    def beside_diagonal(self, respond: Callable[[Numeric], Solution], efforts: Numeric) -> Numeric:
        """(nv,) B′ q̈ of the accelerations q̈ by these efforts (nv,), which they change. respond: efforts -> solution
        without B′."""
        directions = self.beside.directions
        if not self.beside.acts:
            return np.zeros(len(efforts))
        free = respond(efforts).acceleration
        responses = [respond(efforts + unit).acceleration - free for unit in directions.T]
        return directions @ self.beside.along(free, responses)

    def times(self, a: Numeric) -> Numeric:
        """B a (nv,)"""
        return self.diagonal * a + self.beside.times(a) if self.beside.acts else self.diagonal * a


def _side_by_side(nv: int, blocks: list[tuple[list[int], Numeric]]) -> CoupledInertia:
    """The blocks (m, m), each along its own dofs."""
    joints, first = [dof for dofs, _ in blocks for dof in dofs], 0
    n = len(joints)
    rest: Numeric = np.zeros((n, n))
    for dofs, block in blocks:
        own = range(first, first + len(dofs))
        rest = ops.set_at(rest, own, [ops.set_at(np.zeros(n), own, row) for row in block])
        first += len(dofs)
    return CoupledInertia(np.eye(nv)[:, joints], rest)


@dataclass(frozen=True)
class InertialDrives:
    """The drives of a plant that are solved together with its mechanism, by name."""

    drives: Mapping[str, InertialActuator]

    @classmethod
    def of(cls, drives: Mapping[str, Actuator]) -> InertialDrives:
        inertial = {name: drive for name, drive in drives.items() if getattr(drive, "is_inertial", False)}
        return cls(cast(Mapping[str, InertialActuator], inertial))

    def __bool__(self) -> bool:
        return bool(self.drives)

    @property
    def passes(self) -> int:
        return 1 if all(drive.is_linear_in_acceleration for drive in self.drives.values()) else PASSES

    def solved(
        self, plant: PlantWithDrives, at: PlantMotion, request: Numeric, a: Numeric, rest: Numeric
    ) -> tuple[Solution, Numeric]:
        """(what the equations of motion determine, e − B′ q̈ (nv,)); a (nv,): accelerations of known dofs; rest (nv,):
        efforts beside the drives."""
        found, e, nv = None, a, plant.model.nv
        split = Slopes.apart if plant.other_formulation is None else Slopes.together
        for _ in range(self.passes):
            _, outputs = plant.actuator_flows(at.t, at.x, request, at.q, at.v, a)
            slopes = split(nv, self._blocks(plant, at.t, at.x, request, at.q, at.v, a))
            equations = plant.model.equations.with_rotors(slopes.diagonal)
            e = plant.actuator_efforts(outputs) + slopes.times(a)
            respond = partial(_respond, plant, equations, at, a, rest)
            e = e - slopes.beside_diagonal(respond, e)
            found = respond(e)
            a = found.acceleration
        assert found is not None
        return found, e

    def impulse(
        self, plant: PlantWithDrives, t: Numeric, x: State, solve: Callable[[MechanismEquations, Numeric], Solution]
    ) -> Solution:
        """The impulse balance of mechanism and drives: the effort of its solution is what fixes dofs, without what the
        drives give. solve: (equations, impulses on the dofs (nv,)) -> its solution.

        Where B is constant piece by piece, it is taken without acceleration."""
        q, v, _ = plant.motion(t, x)
        none: Numeric = np.zeros(plant.model.nv)
        slopes = self._slopes(plant, t, x, none, q, v, none)
        equations = plant.model.equations.with_rotors(slopes.diagonal)
        given = -slopes.beside_diagonal(lambda impulses: solve(equations, impulses), none)
        found = solve(equations, given)
        return found._replace(effort=found.effort - given)

    def after_jump(self, plant: PlantWithDrives, t: Numeric, x: State, jump: Numeric) -> State:
        """The state of a plant whose velocities jump next by `jump` (nv,), with the states of drives after it."""
        q, v, _ = plant.motion(t, x)
        chart, states, none = plant.model.equations.chart(q), dict(x["actuators"]), np.zeros(plant.model.nv)
        for name, drive in self.drives.items():
            u = plant.inputs_of(name, none, chart, v, none)
            _, D = drive.by_acceleration(t, drive.params, states[name], u)
            change = D @ jump[list(plant.joints_of[name].values())] if len(D) else none[:0]
            own = zip(drive.states, change, strict=True)
            states[name] = states[name] | {state: states[name][state] + part for state, part in own}
        return x | {"actuators": states}

    def matrix(self, plant: PlantWithDrives, t: Numeric, x: State, a: Numeric) -> np.ndarray:
        """B (nv, nv) of a state, without requests to the drives, at accelerations a (nv,)."""
        q, v, _ = plant.motion(t, x)
        slopes = self._slopes(plant, t, x, np.zeros(len(a)), q, v, a)
        return np.array([slopes.times(unit) for unit in np.eye(len(a))], dtype=float).T

    def inertias(self, plant: PlantWithDrives) -> Numeric:
        """(nv,) the diagonal of B at the start, without requests and accelerations; numbers or symbols."""
        x, none = plant.initial(), np.zeros(plant.model.nv)
        q, v, _ = plant.motion(0.0, x)
        return self._slopes(plant, 0.0, x, none, q, v, none).diagonal

    def stored(self, plant: PlantWithDrives, t: Numeric, x: State) -> Numeric:
        """The energy in the drives [J]."""
        q, v, _ = plant.motion(t, x)
        none = np.zeros(plant.model.nv)
        _, outputs = plant.actuator_flows(t, x, none, q, v, none)
        return ops.sum(outputs[name]["stored"] for name in self.drives)

    def _slopes(
        self, plant: PlantWithDrives, t: Numeric, x: State, request: Numeric, q: Numeric, v: Numeric, a: Numeric
    ) -> Slopes:
        """B in a state, at accelerations a (nv,)."""
        return Slopes.apart(plant.model.nv, self._blocks(plant, t, x, request, q, v, a))

    def _blocks(
        self, plant: PlantWithDrives, t: Numeric, x: State, request: Numeric, q: Numeric, v: Numeric, a: Numeric
    ) -> list[tuple[list[int], Numeric]]:
        """By drive its dofs and its B (m, m)."""
        chart, blocks = plant.model.equations.chart(q), []
        for name, drive in self.drives.items():
            u = plant.inputs_of(name, request, chart, v, a)
            B, _ = drive.by_acceleration(t, drive.params, x["actuators"][name], u)
            blocks.append((list(plant.joints_of[name].values()), B))
        return blocks


def _respond(
    plant: PlantWithDrives, equations: MechanismEquations, at: PlantMotion, a: Numeric, rest: Numeric, efforts: Numeric
) -> Solution:
    return plant.accelerated(equations, at, a, efforts + rest)
