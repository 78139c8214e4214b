"""Blocks for tests of coupled parts: masses, springs and the quarter car, with their exact motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import expm

from cosim.coupling import BlockPart, PowerBond
from cosim.types import Numeric, Signal, State, param, params

FORCE, VELOCITY, POSITION, ENERGY = (Signal((), unit) for unit in ("N", "m/s", "m", "J"))


@params
class Oscillator:
    """A mass on a spring and a damper to the ground, and one to a moving end, of which it gives the force."""

    mass: float = param(unit="kg", default=1.0)
    stiffness: float = param(unit="N/m", default=10.0)
    damping: float = param(unit="N*s/m", default=0.0)
    coupling_stiffness: float = param(unit="N/m", default=100.0)
    coupling_damping: float = param(unit="N*s/m", default=0.0)


@dataclass
class SprungMass:
    """Velocity of the moving end in, force on it out: it has feedthrough where the coupling is damped."""

    params: Oscillator
    velocity: float = 0.0
    inputs = {"velocity": VELOCITY}
    outputs = {"force": FORCE, "position": POSITION, "energy": ENERGY}
    positions = ("x", "end")

    def initial(self) -> State:
        return {"x": np.zeros(()), "end": np.zeros(()), "v": np.array(self.velocity)}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        on_end = p.coupling_stiffness * (x["x"] - x["end"]) + p.coupling_damping * (x["v"] - u["velocity"])
        acceleration = (-p.stiffness * x["x"] - p.damping * x["v"] - on_end) / p.mass
        rates = {"x": x["v"], "end": u["velocity"], "v": acceleration}
        stretched = x["x"] - x["end"]
        energy = 0.5 * (
            p.mass * x["v"] * x["v"] + p.stiffness * x["x"] * x["x"] + p.coupling_stiffness * stretched * stretched
        )
        return rates, {"force": on_end, "position": x["x"], "energy": energy}


@dataclass
class DrivenMass:
    """A mass on a spring and a damper to the ground, with a force on it."""

    params: Oscillator
    velocity: float = 0.0
    inputs = {"force": FORCE}
    outputs = {"velocity": VELOCITY, "position": POSITION, "energy": ENERGY}
    positions = ("x",)

    def initial(self) -> State:
        return {"x": np.zeros(()), "v": np.array(self.velocity)}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        acceleration = (u["force"] - p.stiffness * x["x"] - p.damping * x["v"]) / p.mass
        energy = 0.5 * (p.mass * x["v"] * x["v"] + p.stiffness * x["x"] * x["x"])
        return {"x": x["v"], "v": acceleration}, {"velocity": x["v"], "position": x["x"], "energy": energy}


BOND = PowerBond(effort=("left.force", "right.force"), flow=("right.velocity", "left.velocity"))


@dataclass
class TwoMasses:
    """The linear oscillator of two masses of the University of A Coruña (github.com/fgonzalezLIM/cosim-benchmarks,
    doc/linearOscillator.tex, table 1): 1 kg each; 10, 100 and 1000 N/m; velocities 100 and −100 m/s; case 0 without
    damping, case 1 with 0.01 N·s/m."""

    damping: float = 0.0
    stiffness: tuple[float, float, float] = (10.0, 100.0, 1000.0)
    velocities: tuple[float, float] = (100.0, -100.0)

    @property
    def blocks(self) -> tuple[SprungMass, DrivenMass]:
        k1, kc, k2 = self.stiffness
        c = self.damping
        return (
            SprungMass(Oscillator(1.0, k1, c, kc, c), self.velocities[0]),
            DrivenMass(Oscillator(1.0, k2, c), self.velocities[1]),
        )

    def parts(self, step: float) -> dict[str, BlockPart]:
        return {name: BlockPart(block, step) for name, block in zip(("left", "right"), self.blocks, strict=True)}

    def exact(self, t: np.ndarray) -> np.ndarray:
        """(n, 4) positions and velocities of both at times t (n,)."""
        k1, kc, k2 = self.stiffness
        c = self.damping
        stiffness, damping = (np.array([[a + b, -b], [-b, d + b]]) for a, b, d in ((k1, kc, k2), (c, c, c)))
        a = np.block([[np.zeros((2, 2)), np.eye(2)], [-stiffness, -damping]])
        start = np.array([0.0, 0.0, *self.velocities])
        return np.array([expm(a * time) @ start for time in np.atleast_1d(t)])
