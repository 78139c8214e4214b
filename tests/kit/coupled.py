"""Blocks for tests of coupled parts: masses, springs and the quarter car, with their exact motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import expm

from cosim.core.types import Numeric, Signal, Signals, State, param, params
from cosim.simulation.coupling import BlockPart, PowerBond

FORCE, VELOCITY, POSITION, ENERGY = (Signal((), unit) for unit in ("N", "m/s", "m", "J"))


@params
class Oscillator:
    """A mass on a spring and a damper to the ground, and one to a moving end, of which it gives the force."""

    mass: float = param(unit="kg", default=1.0)
    stiffness: float = param(unit="N/m", default=10.0)
    damping: float = param(unit="N*s/m", default=0.0)
    coupling_stiffness: float = param(unit="N/m", default=100.0)
    coupling_damping: float = param(unit="N*s/m", default=0.0)


class SprungMass:
    """Velocity of the moving end in, force on it out: it has feedthrough where the coupling is damped."""

    positions = ("x", "end")

    def __init__(self, params: Oscillator, velocity: float = 0.0) -> None:
        self.params = params
        self.velocity = velocity
        self.inputs: Signals = {"velocity": VELOCITY}
        self.outputs: Signals = {"force": FORCE, "position": POSITION, "energy": ENERGY}

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


class DrivenMass:
    """A mass on a spring and a damper to the ground, with a force on it."""

    positions = ("x",)

    def __init__(self, params: Oscillator, velocity: float = 0.0) -> None:
        self.params = params
        self.velocity = velocity
        self.inputs: Signals = {"force": FORCE}
        self.outputs: Signals = {"velocity": VELOCITY, "position": POSITION, "energy": ENERGY}

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


@params
class QuarterCar:
    """A quarter car as in the benchmark of Sadjina, Kyllingstad, Skjong and Pedersen (arXiv 1602.06434), with the
    parameters of the quarter truck of Vico (NTNU-IHB on GitHub, its SSP file) and a road of our own."""

    chassis: float = param(unit="kg", default=400.0)
    suspension_stiffness: float = param(unit="N/m", default=15000.0)
    suspension_damping: float = param(unit="N*s/m", default=1000.0)
    wheel: float = param(unit="kg", default=40.0)
    tire_stiffness: float = param(unit="N/m", default=150000.0)
    road: float = param(unit="m", default=0.1)


class Chassis:
    """The chassis on its suspension: velocity of the wheel in, force on the wheel out."""

    def __init__(self, params: QuarterCar) -> None:
        self.params = params
        self.inputs: Signals = {"velocity": VELOCITY}
        self.outputs: Signals = {"force": FORCE, "position": POSITION}

    def initial(self) -> State:
        return {"x": np.zeros(()), "wheel": np.zeros(()), "v": np.zeros(())}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        force = p.suspension_stiffness * (x["x"] - x["wheel"]) + p.suspension_damping * (x["v"] - u["velocity"])
        rates = {"x": x["v"], "wheel": u["velocity"], "v": -force / p.chassis}
        return rates, {"force": force, "position": x["x"]}


class Wheel:
    """The wheel on its tire, on a road that is higher than at rest from the start on."""

    def __init__(self, params: QuarterCar) -> None:
        self.params = params
        self.inputs: Signals = {"force": FORCE}
        self.outputs: Signals = {"velocity": VELOCITY, "position": POSITION}

    def initial(self) -> State:
        return {"x": np.zeros(()), "v": np.zeros(())}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        acceleration = (u["force"] + p.tire_stiffness * (p.road - x["x"])) / p.wheel
        return {"x": x["v"], "v": acceleration}, {"velocity": x["v"], "position": x["x"]}


def quarter_car(step: float) -> tuple[dict[str, BlockPart], PowerBond]:
    parts = {"chassis": BlockPart(Chassis(QuarterCar()), step), "wheel": BlockPart(Wheel(QuarterCar()), step)}
    return parts, PowerBond(("chassis.force", "wheel.force"), ("wheel.velocity", "chassis.velocity"))


def quarter_car_exact(t: np.ndarray) -> np.ndarray:
    """(n, 2) positions of chassis and wheel at times t (n,)."""
    p = QuarterCar()
    k, d = p.suspension_stiffness, p.suspension_damping
    # chassis, wheel, their velocities, and the constant 1
    a = np.zeros((5, 5))
    a[0, 2] = a[1, 3] = 1.0
    a[2, :4] = np.array([-k, k, -d, d]) / p.chassis
    a[3, :4] = np.array([k, -k - p.tire_stiffness, d, -d]) / p.wheel
    a[3, 4] = p.tire_stiffness * p.road / p.wheel
    return np.array([(expm(a * time) @ [0.0, 0.0, 0.0, 0.0, 1.0])[:2] for time in t])


@params
class Factor:
    factor: float = param(default=1.0)


class Gain:
    """y = factor · u at the same time, without a state; twice: u2 and y2 too."""

    def __init__(
        self, unit: str, out: str, shape: tuple[int, ...] = (), out_shape: tuple[int, ...] = (), twice: bool = False
    ) -> None:
        self.params = Factor()
        ends = ("", "2") if twice else ("",)
        self.inputs: Signals = {f"u{end}": Signal(shape, unit) for end in ends}
        self.outputs: Signals = {f"y{end}": Signal(out_shape, out) for end in ends}

    def initial(self) -> State:
        return {}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        return {}, {name: p.factor * u[name.replace("y", "u")] for name in self.outputs}


class Lag:
    """y is u behind a time constant [s]: no feedthrough."""

    def __init__(self, unit: str, out: str, time: float = 0.1, start: float = 0.0) -> None:
        self.params, self.time, self.start = Factor(), time, start
        self.inputs: Signals = {"u": Signal((), unit)}
        self.outputs: Signals = {"y": Signal((), out)}

    def initial(self) -> State:
        return {"y": np.array(self.start)}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        return {"y": (u["u"] - x["y"]) / self.time}, {"y": x["y"]}


class Lags(Lag):
    """Two lags: y of u [N], y2 of u2 [N], in m/s."""

    def __init__(self) -> None:
        super().__init__("N", "m/s")
        self.inputs = {**self.inputs, "u2": Signal((), "N")}
        self.outputs = {**self.outputs, "y2": Signal((), "m/s")}

    def initial(self) -> State:
        return {"y": np.ones(()), "y2": np.ones(())}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        rates = {name: (u[name.replace("y", "u")] - x[name]) / self.time for name in ("y", "y2")}
        return rates, {"y": x["y"], "y2": x["y2"]}


class SampledGain:
    """y = factor · u at each sample, held until the next; n counts the samples."""

    def __init__(self, unit: str, out: str, factor: float = 1.0) -> None:
        self.params = Factor(factor)
        self.inputs: Signals = {"u": Signal((), unit)}
        self.outputs: Signals = {"y": Signal((), out), "n": Signal((), "1")}

    def initial(self) -> State:
        return {"n": np.zeros(())}

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        return {"n": x["n"] + 1.0}, {"y": p.factor * u["u"], "n": x["n"] + 1.0}
