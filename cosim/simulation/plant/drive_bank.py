"""The drives of a plant in an integration of their own: what acts on each dof by itself, and iterations of an implicit
step, like drives in SIMD lanes.

On a dof act its drive, and dry friction that depends on more than the velocity. For a given change δv of the velocity
of its dof, the linearised equations of one drive are solved by themselves; what couples the drives is the mechanism,
through the efforts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.alike import Alike, groups
from cosim.core.compile.elimination import Elimination
from cosim.core.compile.jacobian import Linearisation
from cosim.core.compile.mathlib import TOGETHER
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import Shape
from cosim.core.layout import Layout
from cosim.core.types import ACCELERATION, Actuator, Numeric, State
from cosim.mechanics.multibody.friction import JointFriction
from cosim.simulation.plant.bristles import Bristles, JointLoads
from cosim.simulation.plant.plant import Plant


@dataclass(frozen=True)
class DriveWithFriction:
    """A block of a drive, or none, and the dry friction of its dof by a law."""

    actuator: Actuator | None
    law: JointFriction
    params: Any = None

    def initial(self, position: float, velocity: float) -> State:
        drive = self.actuator.initial(position, velocity) if self.actuator else {}
        return {"drive": drive} | ({"bristle": np.zeros(1)} if self.law.sticks else {})

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        dx: State = {}
        y: dict[str, Numeric] = {"effort": 0.0, "power": 0.0, "loss": 0.0}
        if self.actuator:
            dx, y = self.actuator.flow(t, self.actuator.params, x["drive"], u)
        bristles, v, effort = Bristles({0: self.law}), ops.array([u["velocity"]]), ops.array([y["effort"]])
        loads, z = JointLoads(effort, np.zeros(1)), x.get("bristle", np.zeros(0))
        friction, rates = bristles.dry_efforts(v, loads, z)[0], bristles.rates(v, loads, z)
        loss = y["loss"] + friction * v[0] - bristles.stored_power(z, rates)
        found = {"effort": effort[0] - friction, "power": y["power"], "loss": loss}
        return {"drive": dx} | ({"bristle": rates} if self.law.sticks else {}), found

    @property
    def is_inertial(self) -> bool:
        return getattr(self.actuator, "is_inertial", False)


@dataclass(frozen=True)
class JointDrives:
    """The drives of a plant, by dof."""

    plant: Plant

    @property
    def laws(self) -> dict[int, JointFriction]:
        """Dof -> the law of its dry friction, where that depends on more than the velocity."""
        bristles = self.plant.bristles
        return {k: law for k, law in bristles.laws.items() if k not in bristles.real and (law.sticks or law.of_drive)}

    @property
    def blocks(self) -> dict[str, Any]:
        """Dof name -> drive, friction, or both."""
        blocks: dict[str, Any] = dict(self.plant.drives)
        for k, law in self.laws.items():
            name = self.plant.model.dof_names[k]
            blocks[name] = DriveWithFriction(self.plant.drives.get(name), law)
        return blocks

    def states(self, state: State) -> dict[str, State]:
        """The states of the blocks in a state of the plant."""
        found, names = dict(state["actuators"]), self.plant.model.dof_names
        for k, law in self.laws.items():
            bristle = {}
            if law.sticks:
                place = self.plant.bristles.dofs.index(k)
                bristle = {"bristle": state["bristles"][place : place + 1]}
            found[names[k]] = {"drive": found.get(names[k], {})} | bristle
        return found

    def of_plant(self, states: Mapping[str, State]) -> State:
        """The parts of the state of the plant, from `states`."""
        names, bristles = self.plant.model.dof_names, self.plant.bristles
        with_friction = {names[k] for k in self.laws}
        actuators = {
            name: states[name]["drive"] if name in with_friction else states[name] for name in self.plant.drives
        }
        held = ops.concatenate([states[names[k]]["bristle"] for k in bristles.dofs])
        return {"actuators": actuators} | ({"bristles": held} if bristles else {})


RELATIVE, ABSOLUTE = 1e-3, 1e-5  # changes of a state that end an iteration; the next one would be far smaller


class Drive:
    """One drive in the implicit step y = c + γh ẏ, with the n states of the drive among y.

    now: states, position and velocity of the dof (n + 2,); clock: time, γh [s]; base (n + 2,): c of `now`, so that the
    acceleration of the dof is (v − c)/γh.
    """

    def __init__(self, actuator: Actuator | DriveWithFriction, dof: int) -> None:
        self.actuator, self.dof = actuator, dof
        self._is_inertial = getattr(actuator, "is_inertial", False)
        self.layout = Layout(actuator.initial(0.0, 0.0))
        self.size = self.layout.size
        self._shapes: list[Shape] = [(self.size + 2,), (1,), (2,), (self.size + 2,)]
        self._linearised = Linearisation(self._rates, self._shapes)
        # elements of 1 − γh ∂ẋ/∂x that are not 0 in general
        self._nonzero = self._linearised.nonzero[: self.size, : self.size] | np.eye(self.size, dtype=bool)

    def _flow(
        self, now: Numeric, request: Numeric, clock: Numeric, base: Numeric
    ) -> tuple[Numeric, Mapping[str, Numeric]]:
        velocity = now[self.size + 1]
        u = {"request": request[0], "position": now[self.size], "velocity": velocity}
        if self._is_inertial:
            u[ACCELERATION] = (velocity - base[self.size + 1]) / clock[1]
        dx, y = self.actuator.flow(clock[0], self.actuator.params, self.layout.unpack(now[: self.size]), u)
        return self.layout.pack(dx), y

    def _rates(self, now: Numeric, request: Numeric, clock: Numeric, base: Numeric) -> Numeric:
        """(ẋ (n,), effort on the dof)"""
        dx, y = self._flow(now, request, clock, base)
        return ops.concatenate([dx, ops.array([y["effort"]])])

    def powers(self, now: Numeric, request: Numeric, clock: Numeric, base: Numeric) -> Numeric:
        """Power supplied and lost [W]."""
        _, y = self._flow(now, request, clock, base)
        return ops.array([y["power"], y["loss"]])

    def iterate(self, now: Numeric, request: Numeric, clock: Numeric, base: Numeric) -> Numeric:
        """One iteration of Newton's method, linear in δv: the changes of the states and γh · effort after them for
        δv = 0 (n + 1,), the same per δv (n + 1,), and by how much a state changes too much, see `beyond`.
        """
        n, width = self.size, clock[1]
        rates, slope = (width * values for values in self._linearised(now, request, clock, base))
        missing = base - now
        matrix = Elimination(np.eye(n) - slope[:n, :n], self._nonzero)
        way = missing[n] + width * now[n + 1]  # of the position
        right = rates + slope[:, n] * way
        by_velocity = slope[:, n + 1] + width * slope[:, n]
        states, of_states = matrix.solve(missing[:n] + right[:n]), matrix.solve(by_velocity[:n])
        effort, of_effort = right[n] + slope[n, :n] @ states, by_velocity[n] + slope[n, :n] @ of_states
        excess = beyond(states, now[:n])
        return ops.concatenate([states, ops.array([effort]), of_states, ops.array([of_effort, excess])])

    @cached_property
    def routines(self) -> dict[str, Routine]:
        """Of its functions by name."""
        return {
            "iterate": Routine(self.iterate, self._shapes, "iterate_drive"),
            "powers": Routine(self.powers, self._shapes, "powers_of_drive"),
        }


def beyond(changes: Numeric, values: Numeric) -> Numeric:
    """By how much the largest change is too large to end an iteration."""
    worst: Numeric = -ABSOLUTE
    for change, value in zip(changes, values, strict=True):
        worst = ops.maximum(worst, ops.abs(change) - (ABSOLUTE + RELATIVE * ops.abs(value)))
    return worst


@dataclass(frozen=True)
class Iteration:
    """One iteration of all drives, linear in δv (nv,)."""

    bank: DriveBank
    parts: Sequence[tuple[Numeric, Numeric]]  # (states, drives) of each class: changes for δv = 0, changes per δv
    efforts: Numeric  # (nv,) γh · efforts for δv = 0
    efforts_by_velocity: Numeric  # (nv,)
    excess: Numeric  # see `beyond`

    def changes(self, v: Numeric) -> list[Numeric]:
        """Of the states of the drives for this δv, class by class."""
        pairs = zip(self.bank.classes, self.parts, strict=True)
        return [(states + by_velocity * v[like.dofs]).reshape(-1) for like, (states, by_velocity) in pairs]


class LikeDrives:
    """Drives whose equations differ in numbers only. Their states are in z from `first` on, the first state of all
    drives, then the second one."""

    def __init__(self, drives: Sequence[Drive], first: int) -> None:
        self.drives, self.first, self.count = drives, first, len(drives)
        self.size = drives[0].size
        self.end = first + self.size * self.count
        self.dofs = np.array([drive.dof for drive in drives])
        self._functions: dict[str, Callable[..., Numeric]] = {}

    def place(self, nz: int, nv: int) -> None:
        """nz: the size of z; called once that is known."""
        position = nz - 2 * nv + self.dofs[:, None]
        states = self.first + np.arange(self.size * self.count).reshape(-1, self.count).T
        now, clock = np.hstack([states, position, position + nv]), np.tile([0, 1], (self.count, 1))
        places, sizes = [now, self.dofs[:, None], clock, now], [nz, nv, 2, nz]
        for name, routine in self.drives[0].routines.items():
            n = len(routine.shapes)
            if self.count > 1:
                items = [drive.routines[name] for drive in self.drives]
                self._functions[name] = Alike(items, places[:n], sizes[:n], f"{name}_together")
            else:
                self._functions[name] = partial(_of_one, getattr(self.drives[0], name), places[:n])

    def iterate(self, z: Numeric, request: Numeric, clock: Numeric, base: Numeric) -> Numeric:
        """(2 n + 3, drives) by `Drive.iterate`."""
        return self._functions["iterate"](z, request, clock, base).reshape(-1, self.count)

    def powers(self, z: Numeric, request: Numeric, clock: Numeric, base: Numeric) -> Numeric:
        """(2, drives)"""
        return self._functions["powers"](z, request, clock, base).reshape(-1, self.count)

    def of(self, z: Numeric) -> Numeric:
        """(states, drives)"""
        return z[self.first : self.end].reshape(-1, self.count)


def _of_one(fn: Callable[..., Numeric], places: Sequence[np.ndarray], *vectors: Numeric) -> Numeric:
    return fn(*(vector[where[0]] for vector, where in zip(vectors, places, strict=True)))


class DriveBank:
    """All drives of a plant, like ones together.

    z (size,): their states, class by class, then position and velocity of every dof (nv,).
    """

    def __init__(self, drives: Mapping[str, Drive], nv: int, compiled: bool) -> None:
        """drives: by name; compiled: whether like drives become SIMD lanes."""
        self.drives, self.nv = drives, nv
        self.classes: list[LikeDrives] = []
        end = 0
        for alike in _classes(list(drives.values())) if compiled else [[drive] for drive in drives.values()]:
            self.classes.append(LikeDrives(alike, end))
            end = self.classes[-1].end
        self.size = end + 2 * nv
        for like in self.classes:
            like.place(self.size, nv)

    @classmethod
    def of(cls, drives: JointDrives, compiled: bool) -> DriveBank:
        """Of the drives of a plant."""
        model = drives.plant.model
        found = {name: Drive(block, model.dof_index(name)) for name, block in drives.blocks.items()}
        return cls(found, model.nv, compiled)

    # --- parts of z ---

    def start(self, states: Mapping[str, State], position: Numeric, v: Numeric) -> Numeric:
        """z with these states of the drives by name; position, v: (nv,)."""
        flat = {id(drive): drive.layout.pack(states[name]) for name, drive in self.drives.items()}
        rows = [ops.array([flat[id(drive)] for drive in like.drives]).T.reshape(-1) for like in self.classes]
        return ops.concatenate([*rows, position, v])

    def position(self, z: Numeric) -> Numeric:
        return z[-2 * self.nv : -self.nv]

    def velocity(self, z: Numeric) -> Numeric:
        return z[-self.nv :]

    def states(self, z: Numeric) -> dict[str, State]:
        """By name."""
        pairs = (
            (drive, column) for like in self.classes for drive, column in zip(like.drives, like.of(z).T, strict=True)
        )
        flat = {id(drive): column for drive, column in pairs}
        return {name: drive.layout.unpack(flat[id(drive)]) for name, drive in self.drives.items()}

    # --- their equations ---

    def iterate(self, z: Numeric, request: Numeric, clock: Numeric, base: Numeric) -> Iteration:
        """base: c of z; clock: time, γh [s]"""
        found = [like.iterate(z, request, clock, base) for like in self.classes]
        efforts, by_velocity, worst = np.zeros(self.nv), np.zeros(self.nv), -ABSOLUTE
        parts = []
        for like, rows in zip(self.classes, found, strict=True):
            n = like.size
            parts.append((rows[:n], rows[n + 1 : 2 * n + 1]))
            efforts = ops.set_at(efforts, like.dofs, rows[n])
            by_velocity = ops.set_at(by_velocity, like.dofs, rows[2 * n + 1])
            for excess in rows[-1]:
                worst = ops.maximum(worst, excess)
        return Iteration(self, parts, efforts, by_velocity, worst)

    def powers(self, z: Numeric, request: Numeric, clock: Numeric, base: Numeric) -> Numeric:
        """(power supplied, lost) by all drives [W] (2,)"""
        rows = [like.powers(z, request, clock, base) for like in self.classes]
        return ops.array([ops.sum(x for row in rows for x in row[k]) for k in range(2)])


def _classes(drives: Sequence[Drive]) -> list[list[Drive]]:
    """Drives that are evaluated together; few ones are as fast by themselves."""
    found = [[drives[k] for k in like] for like in groups([drive.routines["iterate"] for drive in drives])]
    return [part for like in found for part in ([like] if len(like) >= TOGETHER else [[drive] for drive in like])]
