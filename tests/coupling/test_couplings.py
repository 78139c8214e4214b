"""Wrong couplings are named exactly."""

import numpy as np
import pytest

from cosim.coupling import BlockPart, CoupledParts, EnergyControl, EnergyCorrection, PowerBond, Wire
from cosim.errors import CosimError
from tests.kit.coupled import BOND, Gain, Lag, Lags, TwoMasses

MASSES = TwoMasses().parts(1e-3)
EFFORT, FLOW = BOND.effort, BOND.flow
BACK = "right.velocity -> left.velocity"
POWERS = "known efforts and flows: N and m/s, N·m and rad/s, Pa and m^3/s, V and A"

WRONG = {
    "part": (
        [PowerBond(("lfet.force", "right.force"), FLOW)],
        f"bond lfet.force -> right.force, {BACK}: there is no part 'lfet'; did you mean 'left'?",
    ),
    "output": (
        [PowerBond(("left.fource", "right.force"), FLOW)],
        f"bond left.fource -> right.force, {BACK}: part 'left' has no output 'fource'; did you mean 'force'?",
    ),
    "input": (
        [Wire("left.force", "right.torque")],
        "wire left.force -> right.torque: part 'right' has no input 'torque'; known: force",
    ),
    "output that is an input": (
        [Wire("right.force", "right.force")],
        "wire right.force -> right.force: 'force' of part 'right' is an input, not output; known: velocity,"
        " position, energy",
    ),
    "no signal": (
        [Wire("left", "right.force")],
        "wire left -> right.force: 'left' names no output; write left.<output>; known: force, position, energy",
    ),
    "exchanged": (
        [PowerBond(FLOW, EFFORT)],
        "bond right.velocity -> left.velocity, left.force -> right.force: m/s is the unit of a flow, and N that of an"
        " effort; exchange `effort` and `flow`",
    ),
    "unit": (
        [Wire("left.position", "right.force")],
        "wire left.position -> right.force: 'left.position' is in m, 'right.force' in N; both must be the same",
    ),
    "twice": (
        [BOND, Wire("left.force", "right.force")],
        "wire left.force -> right.force: input 'right.force' is driven by 'left.force' already; remove one of both",
    ),
    "missing": (
        [Wire("left.force", "right.force")],
        "input 'left.velocity' has no source; connect an output to it",
    ),
}


@pytest.mark.parametrize("couplings, message", WRONG.values(), ids=WRONG)
def test_wrong_couplings_are_named(couplings, message):
    with pytest.raises(CosimError) as error:
        CoupledParts(MASSES, couplings)
    assert str(error.value) == message
    assert error.value.exit_code == 2


def gain(unit: str, out: str, shape: tuple[int, ...] = (), out_shape: tuple[int, ...] = ()) -> BlockPart:
    return BlockPart(Gain(unit, out, shape, out_shape), 1e-3)


def test_a_bond_that_carries_no_power_is_named():
    parts = {"a": gain("m", "N"), "b": gain("N", "m")}
    bond = PowerBond(("a.y", "b.u"), ("b.y", "a.u"))
    with pytest.raises(CosimError) as error:
        CoupledParts(parts, [bond])
    assert str(error.value) == f"bond a.y -> b.u, b.y -> a.u: the product of N and m is no power; {POWERS}"


def test_a_flow_that_does_not_come_back_is_named():
    parts = {"a": gain("m/s", "N"), "b": gain("N", "m/s"), "c": gain("N", "m/s")}
    with pytest.raises(CosimError) as error:
        CoupledParts(parts, [PowerBond(("a.y", "b.u"), ("c.y", "a.u"))])
    text = (
        "bond a.y -> b.u, c.y -> a.u: the flow must come back from 'b' to 'a'; use a wire for each signal that does not"
    )
    assert str(error.value).splitlines()[0] == text


def test_shapes_that_differ_are_named():
    parts = {"a": gain("m/s", "N", (3,), (3,)), "b": gain("N", "m/s")}
    with pytest.raises(CosimError) as error:
        CoupledParts(parts, [Wire("a.y", "b.u"), Wire("b.y", "a.u", 0.0)])
    lines = str(error.value).splitlines()
    assert lines[0] == "wire a.y -> b.u: 'a.y' has shape (3,), 'b.u' (); both must be the same"


def test_all_wrong_couplings_are_named_together():
    with pytest.raises(CosimError) as error:
        CoupledParts(MASSES, [WRONG["part"][0][0], WRONG["unit"][0][0]])
    assert str(error.value).splitlines() == [WRONG["part"][1], WRONG["unit"][1]]


SETTINGS = {
    "master": ({"master": "jacoby"}, "there is no master 'jacoby'; did you mean 'jacobi'?"),
    "order": ({"order": 3}, "the order of extrapolation is 3; it must be 0, 1 or 2"),
    "step": ({"step": 0.0}, "the step of the coupling is 0.0 s; it must be a time above 0"),
    "time limit": ({"time_limit": 0.0}, "the time limit is 0.0 s; it must be above 0"),
    "parts": ({"parts": {}}, "there are no parts; give at least one"),
    "sequence": ({"sequence": ["left"]}, "the sequence must name every part once: left, right"),
}


@pytest.mark.parametrize("settings, message", SETTINGS.values(), ids=SETTINGS)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(CosimError) as error:
        CoupledParts(**{"parts": MASSES, "couplings": [BOND], **settings})
    assert str(error.value) == message


NUMBERS = {
    "bounds": (
        lambda: EnergyControl(1e-2, 1e-3),
        "step control: shortest 0.01 s and longest 0.001 s; they must be 0 < shortest <= longest",
    ),
    "tolerance": (
        lambda: EnergyControl(1e-3, 1e-2, relative=0.0),
        "step control: tolerances of energy must be above 0",
    ),
    "gain": (
        lambda: EnergyCorrection(gain=2.0),
        "energy correction: the gain is 2.0; it must be above 0 and at most 1",
    ),
    "limit": (lambda: EnergyCorrection(limit=0.0), "energy correction: the limit is 0.0; it must be above 0"),
    "micro step": (
        lambda: BlockPart(Gain("N", "N"), -1.0, name="a"),
        "a: the step is -1.0 s; it must be a time above 0",
    ),
    "integrator": (
        lambda: BlockPart(Gain("N", "N"), 1e-3, "rk5", name="a"),
        "a: there is no integrator 'rk5'; did you mean 'rk4'?",
    ),
}


@pytest.mark.parametrize("make, message", NUMBERS.values(), ids=NUMBERS)
def test_wrong_numbers_are_named(make, message):
    with pytest.raises(CosimError) as error:
        make()
    assert str(error.value) == message


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
    with pytest.raises(CosimError) as error:
        CoupledParts({"a": gain("V", "joint effort"), "b": gain("V", "V")}, [Wire("a.y", "b.u"), Wire("b.y", "a.u")])
    text = "wire a.y -> b.u: 'a.y' is in joint effort, 'b.u' in V; both must be the same"
    assert str(error.value).splitlines()[0] == text


def test_steps_that_are_too_short_are_named():
    parts = {"a": gain("N", "N"), "b": BlockPart(Lag("N", "N"), 1e-10)}
    with pytest.raises(CosimError) as error:
        CoupledParts(parts, [Wire("a.y", "b.u"), Wire("b.y", "a.u")])
    text = "its step of 1e-10 s is too short for steps of the coupling of 0.001 s; at most 1000000 are made in one"
    assert str(error.value) == f"part 'b': {text}"


def test_a_block_whose_state_is_not_known_is_named():
    class Started(Lag):
        def initial(self, position):  # type: ignore[override]
            return {"y": position}

    with pytest.raises(CosimError) as error:
        BlockPart(Started("N", "N"), 1e-3, name="a")
    assert str(error.value) == "a: Started has no `initial()` without arguments; give `initial`, its state"
    part = BlockPart(Started("N", "N"), 1e-3, name="a", initial={"y": np.array(2.0)})
    assert part.at_start(0.0, np.zeros(1))[1].tolist() == [2.0]
