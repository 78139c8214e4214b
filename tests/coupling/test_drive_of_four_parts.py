"""A winding, its rotor, an elastic shaft and a load: four parts, bonds of two domains, against the exact motion."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.core.types import Numeric, Signal, Signals, State
from cosim.simulation.coupling import BlockPart, CoupledParts, EnergyControl, EnergyCorrection, PowerBond
from cosim.simulation.coupling.coupled_parts import MASTERS
from tests.kit.coupled import Factor

INDUCTANCE, CONSTANT, ROTOR, STIFFNESS, LOAD = 2e-3, 0.05, 1e-4, 5.0, 4e-4  # H, N·m/A, kg·m², N·m/rad, kg·m²
TORQUE, SPEED, ENERGY = Signal((), "N*m"), Signal((), "rad/s"), Signal((), "J")

Flow = Callable[[State, Mapping[str, Numeric]], tuple[State, dict[str, Numeric]]]


class Piece:
    """A block from its equations."""

    def __init__(self, inputs: Signals, outputs: Signals, start: State, flow: Flow) -> None:
        self.params, self.inputs, self.start, self.equations = Factor(), inputs, start, flow
        self.outputs: Signals = {**outputs, "energy": ENERGY}

    def initial(self) -> State:
        return self.start

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        return self.equations(x, u)


def winding(x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
    outputs = {"torque": CONSTANT * x["i"], "energy": 0.5 * INDUCTANCE * x["i"] * x["i"]}
    return {"i": -CONSTANT * u["speed"] / INDUCTANCE}, outputs


def rotor(x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
    """Both inputs are torques on it."""
    w = x["w"]
    return {"w": (u["torque"] + u["load"]) / ROTOR}, {"speed": w, "energy": 0.5 * ROTOR * w * w}


def shaft(x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
    """It gives its torque to the load, and the reaction to the rotor."""
    torque = STIFFNESS * x["twist"]
    energy = 0.5 * STIFFNESS * x["twist"] * x["twist"]
    return {"twist": u["rotor"] - u["load"]}, {"torque": torque, "reaction": -torque, "energy": energy}


def load(x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
    w = x["w"]
    return {"w": u["torque"] / LOAD}, {"speed": w, "energy": 0.5 * LOAD * w * w}


def drive(step: float = 1e-4) -> dict[str, BlockPart]:
    zero = np.zeros(())
    pieces = {
        "winding": Piece({"speed": SPEED}, {"torque": TORQUE}, {"i": np.array(10.0)}, winding),
        "rotor": Piece({"torque": TORQUE, "load": TORQUE}, {"speed": SPEED}, {"w": zero}, rotor),
        "shaft": Piece({"rotor": SPEED, "load": SPEED}, {"torque": TORQUE, "reaction": TORQUE}, {"twist": zero}, shaft),
        "load": Piece({"torque": TORQUE}, {"speed": SPEED}, {"w": zero}, load),
    }
    return {name: BlockPart(piece, step) for name, piece in pieces.items()}


BONDS = [
    PowerBond(("winding.torque", "rotor.torque"), ("rotor.speed", "winding.speed")),
    PowerBond(("shaft.reaction", "rotor.load"), ("rotor.speed", "shaft.rotor")),
    PowerBond(("shaft.torque", "load.torque"), ("load.speed", "shaft.load")),
]


def exact(t: np.ndarray) -> np.ndarray:
    """(n, 4) current, speed of the rotor, twist, speed of the load."""
    a = np.zeros((4, 4))
    a[0, 1], a[1, 0], a[1, 2] = -CONSTANT / INDUCTANCE, CONSTANT / ROTOR, -STIFFNESS / ROTOR
    a[2, 1], a[2, 3], a[3, 2] = 1.0, -1.0, STIFFNESS / LOAD
    return np.array([expm(a * time) @ [10.0, 0.0, 0.0, 0.0] for time in t])


def energy_error(run: Any) -> np.ndarray:
    total = sum(run[f"{name}.energy"] for name in ("winding", "rotor", "shaft", "load"))
    return total - total[0]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("master", MASTERS)
def test_the_motion_is_that_of_the_whole_and_the_residuals_are_the_error_of_its_energy(master, compiled):
    run = CoupledParts(drive(), BONDS, master, 2, 1e-4, compiled=compiled).run(0.05)
    expected = exact(run.t)
    assert run["winding.torque"] == pytest.approx(CONSTANT * expected[:, 0], abs=2e-4)
    assert run["load.speed"] == pytest.approx(expected[:, 3], abs=2e-2)
    assert set(run.residuals) == {"winding-rotor", "shaft-rotor", "shaft-load"}
    assert sum(run.residuals.values()) == pytest.approx(energy_error(run), abs=1e-9)


def test_every_bond_is_corrected():
    errors = []
    for correction in (None, EnergyCorrection()):
        run = CoupledParts(drive(), BONDS, "jacobi", 0, 5e-4, correction=correction).run(0.2)
        assert sum(run.residuals.values()) == pytest.approx(energy_error(run), rel=1e-6, abs=1e-9)
        errors.append(np.abs(energy_error(run)).max())
    start = 0.5 * INDUCTANCE * 10.0**2
    assert errors[0] > start
    assert errors[1] < 0.05 * start


def test_a_tighter_tolerance_of_all_bonds_means_shorter_steps_and_less_error():
    runs = [
        CoupledParts(drive(), BONDS, "jacobi", 1, 1e-5, EnergyControl(1e-6, 1e-3, relative, 0.01 * relative)).run(0.05)
        for relative in (1e-2, 1e-3)
    ]
    loose, tight = (np.abs(energy_error(run)).max() for run in runs)
    assert len(runs[0].t) < len(runs[1].t) < 400
    assert tight < 0.2 * loose
