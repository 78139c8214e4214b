"""What acts on each dof by itself: its drive, and dry friction that depends on more than the velocity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.types import Actuator, Numeric, State
from cosim.mechanics.multibody.friction import JointFriction
from cosim.simulation.plant.bristles import Bristles
from cosim.simulation.plant.plant import Plant


@dataclass(frozen=True)
class DriveWithFriction:
    """As a block: a drive, or none, and the dry friction of its dof by a law."""

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
        z = x.get("bristle", np.zeros(0))
        friction, rates = bristles.dry_efforts(v, effort, z)[0], bristles.rates(v, effort, z)
        loss = y["loss"] + friction * v[0] - bristles.stored_power(z, rates)
        found = {"effort": effort[0] - friction, "power": y["power"], "loss": loss}
        return {"drive": dx} | ({"bristle": rates} if self.law.sticks else {}), found


@dataclass(frozen=True)
class JointDrives:
    """Of a plant, by dof."""

    plant: Plant

    @property
    def laws(self) -> dict[int, JointFriction]:
        """Dof -> the law of its dry friction, where that depends on more than the velocity."""
        bristles = self.plant.bristles
        return {
            k: law
            for k, law in bristles.laws.items()
            if k not in bristles.real and (law.sticks or not ops.is_zero(law.load_friction))
        }

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
