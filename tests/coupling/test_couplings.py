"""Wrong couplings are named exactly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cosim.coupling import BlockPart, CoupledParts, EnergyControl, EnergyCorrection, PowerBond, Wire
from cosim.errors import CosimError
from tests.kit.coupled import BOND, Gain, Lag, Lags, TwoMasses

MASSES = TwoMasses().parts(1e-3)
EFFORT, FLOW = BOND.effort, BOND.flow
LOOP = [Wire("a.y", "b.u"), Wire("b.y", "a.u")]


def gain(unit: str, out: str, shape: tuple[int, ...] = (), out_shape: tuple[int, ...] = ()) -> BlockPart:
    return BlockPart(Gain(unit, out, shape, out_shape), 1e-3)


def masses(*couplings: Any) -> dict[str, Any]:
    return {"parts": MASSES, "couplings": couplings}


def others(couplings: Sequence[Any], **parts: BlockPart) -> dict[str, Any]:
    return {"parts": parts, "couplings": couplings}


NO_PART, NO_UNIT = PowerBond(("lfet.force", "right.force"), FLOW), Wire("left.position", "right.force")
WRONG = {
    "part": masses(NO_PART),
    "output": masses(PowerBond(("left.fource", "right.force"), FLOW)),
    "input": masses(Wire("left.force", "right.torque")),
    "output that is an input": masses(Wire("right.force", "right.force")),
    "no signal": masses(Wire("left", "right.force")),
    "exchanged": masses(PowerBond(FLOW, EFFORT)),
    "unit": masses(NO_UNIT),
    "twice": masses(BOND, Wire("left.force", "right.force")),
    "missing": masses(Wire("left.force", "right.force")),
    "several": masses(NO_PART, NO_UNIT),
    "no power": others([PowerBond(("a.y", "b.u"), ("b.y", "a.u"))], a=gain("m", "N"), b=gain("N", "m")),
    "a flow that does not come back": others(
        [PowerBond(("a.y", "b.u"), ("c.y", "a.u"))], a=gain("m/s", "N"), b=gain("N", "m/s"), c=gain("N", "m/s")
    ),
    "shapes": others([LOOP[0], Wire("b.y", "a.u", 0.0)], a=gain("m/s", "N", (3,), (3,)), b=gain("N", "m/s")),
    "effort of a joint": others(LOOP, a=gain("V", "joint effort"), b=gain("V", "V")),
    "short steps": others(LOOP, a=gain("N", "N"), b=BlockPart(Lag("N", "N"), 1e-10)),
    "master": masses(BOND) | {"master": "jacoby"},
    "order": masses(BOND) | {"order": 3},
    "step": masses(BOND) | {"step": 0.0},
    "time limit": masses(BOND) | {"time_limit": 0.0},
    "parts": others([]),
    "sequence": masses(BOND) | {"sequence": ["left"]},
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_couplings_are_named(what, said):
    with pytest.raises(CosimError) as error:
        CoupledParts(**WRONG[what])
    said(error.value)
    assert error.value.exit_code == 2


class Started(Lag):
    def initial(self, position):  # type: ignore[override]
        return {"y": position}


NUMBERS = {
    "bounds": lambda: EnergyControl(1e-2, 1e-3),
    "tolerance": lambda: EnergyControl(1e-3, 1e-2, relative=0.0),
    "gain": lambda: EnergyCorrection(gain=2.0),
    "limit": lambda: EnergyCorrection(limit=0.0),
    "micro step": lambda: BlockPart(Gain("N", "N"), -1.0, name="a"),
    "integrator": lambda: BlockPart(Gain("N", "N"), 1e-3, "rk5", name="a"),
    "unknown state": lambda: BlockPart(Started("N", "N"), 1e-3, name="a"),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_wrong_numbers_are_named(what, said):
    with pytest.raises(CosimError) as error:
        NUMBERS[what]()
    said(error.value)


def test_a_state_can_be_given():
    part = BlockPart(Started("N", "N"), 1e-3, name="a", initial={"y": np.array(2.0)})
    assert part.at_start(0.0, np.zeros(1))[1].tolist() == [2.0]


def test_two_bonds_between_the_same_parts_have_names_of_their_own():
    parts = {"a": BlockPart(Gain("m/s", "N", twice=True), 1e-3), "b": BlockPart(Lags(), 1e-3)}
    bonds = [PowerBond((f"a.{y}", f"b.{u}"), (f"b.{y}", f"a.{u}")) for u, y in (("u", "y"), ("u2", "y2"))]
    run = CoupledParts(parts, bonds).run(0.01)
    assert set(run.residuals) == {"a-b", "a-b:2"}


def test_units_of_joints_fit_those_of_their_kinds():
    """An effort of a joint is N·m or N; the product is a power for each kind."""
    parts = {"a": gain("rad/s", "joint effort"), "b": BlockPart(Lag("N*m", "joint velocity"), 1e-3)}
    run = CoupledParts(parts, [PowerBond(("a.y", "b.u"), ("b.y", "a.u"))]).run(0.01)
    assert set(run.residuals) == {"a-b"}
