"""Mechanism and actuators as one continuous block (theory §2, §9).

Inputs: the effort requested of each joint's drive. A prescribed joint moves as its trajectory says and the
hybrid dynamics gives the effort it needs; a joint without actuator or prescription is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cosim import ops
from cosim.layout import Layout
from cosim.multibody import Model
from cosim.multibody.description import Mechanism
from cosim.types import State


@dataclass(frozen=True)
class Plant:
    """`actuators` and `prescribed` (trajectories of one joint) go by joint name; initial position and velocity,
    (nv,), by joint order."""

    mechanism: Mechanism
    gravity: Sequence[float]  # (3,) m/s²
    actuators: Mapping[str, Any]
    prescribed: Mapping[str, Any]
    position: np.ndarray
    velocity: np.ndarray

    @cached_property
    def model(self) -> Model:
        """The mechanism with the rotors of its actuators."""
        rotors = {name: actuator.reflected_inertia for name, actuator in self.actuators.items()}
        return Model(self.mechanism, self.gravity, rotors)

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.initial())

    @property
    def free(self) -> np.ndarray:
        """(nv,) of truth values: joints whose motion is not prescribed."""
        return np.array([name not in self.prescribed for name in self.model.joint_names], dtype=bool)

    def initial(self) -> State:
        """Positions and velocities of the free joints, the actuators' states, and what was supplied and lost."""
        free = self.free
        actuators = {
            name: actuator.initial(self.position[k], self.velocity[k])
            for name, actuator in self.actuators.items()
            for k in [self.model.joint_index(name)]
        }
        return {
            "position": self.position[free].astype(float),
            "velocity": self.velocity[free].astype(float),
            "actuators": actuators,
            "energy": {"work": np.zeros(()), "loss": np.zeros(())},
        }

    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """(positions, rates): where coordinates stand in the flat state, and where their rates do."""
        positions, rates = [self.layout.index("position")], [self.layout.index("velocity")]
        for name, actuator in self.actuators.items():
            for position, rate in actuator.rates.items():
                positions.append(self.layout.index("actuators", name, position))
                rates.append(self.layout.index("actuators", name, rate))
        return np.concatenate(positions), np.concatenate(rates)

    def motion(self, t: Any, x: State) -> tuple[Any, Any, Any]:
        """(q, v, q̈ of the prescribed joints and 0 elsewhere), each (nv,)."""
        q, v, a = [], [], []
        free = iter(range(int(self.free.sum())))
        for name in self.model.joint_names:
            trajectory = self.prescribed.get(name)
            if trajectory is None:
                k = next(free)
                q.append(x["position"][k])
                v.append(x["velocity"][k])
                a.append(0.0)
            else:
                sample = trajectory.sample(t)
                q.append(sample["position"][0])
                v.append(sample["velocity"][0])
                a.append(sample["acceleration"][0])
        return ops.array(q), ops.array(v), ops.array(a)

    def _drive(self, t: Any, x: State, request: Any, q: Any, v: Any) -> tuple[dict[str, State], dict[str, Any]]:
        """(dx, y) of every actuator by joint name."""
        rates, outputs = {}, {}
        for name, actuator in self.actuators.items():
            k = self.model.joint_index(name)
            u = {"request": request[k], "position": q[k], "velocity": v[k]}
            rates[name], outputs[name] = actuator.flow(t, actuator.params, x["actuators"][name], u)
        return rates, outputs

    def feedback(self, t: Any, x: State, request: Any) -> tuple[Any, Any, Any]:
        """(q, v, effort), (nv,) each, as seen by the drives; a prescribed or free joint has none and shows 0 effort."""
        q, v, _ = self.motion(t, x)
        _, driven = self._drive(t, x, request, q, v)
        return q, v, ops.array([driven[n]["effort"] if n in driven else 0.0 for n in self.model.joint_names])

    def _efforts(self, t: Any, x: State, request: Any) -> tuple[Any, ...]:
        q, v, a = self.motion(t, x)
        rates, driven = self._drive(t, x, request, q, v)
        friction = self.model.pure.friction_effort(v)
        effort = ops.array([driven[n]["effort"] if n in driven else 0.0 for n in self.model.joint_names])
        a, load = self.model.pure.hybrid_dynamics(q, v, a, effort - friction, ~self.free)
        effort = ops.where(self.free, effort, load + friction)
        return q, v, a, effort, friction, rates, driven

    def flow(self, t: Any, p: Any, x: State, u: Mapping[str, Any]) -> tuple[State, dict[str, Any]]:
        """u["request"]: (nv,). dx/dt of the state, and `effort` (nv,) on each joint."""
        _, v, a, effort, friction, rates, driven = self._efforts(t, x, u["request"])
        prescribed = [k for k, free in enumerate(self.free) if not free]
        power = ops.total(y["power"] for y in driven.values()) + ops.total(effort[k] * v[k] for k in prescribed)
        loss = ops.total(y["loss"] for y in driven.values()) + friction @ v
        dx = {
            "position": v[self.free],
            "velocity": a[self.free],
            "actuators": rates,
            "energy": {"work": power, "loss": loss},
        }
        return dx, {"effort": effort}

    def observe(self, t: Any, x: State, request: Any) -> dict[str, Any]:
        """What is worth looking at, by signal name: motion and effort of every joint, what its actuator
        shows, and the energy balance."""
        q, v, a, effort, _, _, driven = self._efforts(t, x, request)
        signals: dict[str, Any] = {}
        for k, name in enumerate(self.model.joint_names):
            signals |= {f"{name}/position": q[k], f"{name}/velocity": v[k], f"{name}/acceleration": a[k]}
            signals[f"{name}/effort"] = effort[k]
            shown = [s for s in driven.get(name, {}) if s not in ("effort", "power", "loss", "stored")]
            signals |= {f"{name}/{s}": driven[name][s] for s in shown}
        rules = self.model.pure
        kinetic, potential = rules.kinetic_energy(q, v), rules.potential_energy(q)
        stored = kinetic + potential + ops.total(y["stored"] for y in driven.values())
        energies = {"kinetic": kinetic, "potential": potential, "stored": stored}
        energies |= {"work": x["energy"]["work"], "dissipated": x["energy"]["loss"]}
        signals |= {f"energy/{name}": value for name, value in energies.items()}
        return signals
