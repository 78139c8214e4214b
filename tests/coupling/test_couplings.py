"""Couplings: wrong ones are named exactly; the documented example; scaled wires; where inputs come from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.core.errors import CosimError
from cosim.core.types import Signal, Signals, State
from cosim.simulation.coupling import BlockPart, CoupledParts, EnergyControl, EnergyCorrection, PowerBond, Wire
from cosim.simulation.coupling.calling_master import CallingMaster, HeldPart
from cosim.simulation.coupling.coupled_parts import MASTERS
from cosim.simulation.coupling.couplings import checked
from cosim.simulation.coupling.extrapolation import polynomial
from cosim.simulation.coupling.master import Master, Scheme
from tests.docs.documents import PAGES, blocks
from tests.kit.coupled import BOND, Factor, Gain, Lag, Lags, TwoMasses
from tests.kit.refusals import raised

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
    said(raised(CosimError, NUMBERS[what]))


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


# --- the example of the documentation ---


def test_the_example_is_the_motion_of_a_mass_on_a_spring(capsys):
    (text,) = blocks(PAGES["explanation/co-simulation.md"], "python")
    scope: dict[str, Any] = {}
    exec(compile(text, "co-simulation.md", "exec"), scope)
    run = scope["run"]
    assert run["mass.velocity"] == pytest.approx(np.cos(5.0 * run.t), abs=2e-3)
    velocity, residual = map(float, capsys.readouterr().out.split())
    assert velocity == pytest.approx(run["mass.velocity"][-1])
    energy = run["mass.velocity"] ** 2 + (run["spring.force"] ** 2) / 100.0
    assert residual == pytest.approx(energy[-1] - energy[0], abs=1e-9)


# --- scaled wires ---

FACTOR, OFFSET = -3.0, 0.5


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize("compiled", [True, False])
def test_an_input_is_the_output_scaled_and_shifted(master, compiled):
    """Against scipy on the whole; units differ, and the slope is scaled too, without the offset."""
    parts = {"fast": BlockPart(Lag("N", "m", 0.01, 1.0), 1e-5), "slow": BlockPart(Lag("m", "m", 0.5, 2.0), 1e-3)}
    wires = [Wire("fast.y", "slow.u"), Wire("slow.y", "fast.u", None, FACTOR, OFFSET)]
    run = CoupledParts(parts, wires, master, 2, 2e-4, compiled=compiled).run(0.05)

    def flow(t: float, x: np.ndarray) -> list[float]:
        return [(FACTOR * x[1] + OFFSET - x[0]) / 0.01, (x[0] - x[1]) / 0.5]

    whole = solve_ivp(flow, (0.0, 0.05), [1.0, 2.0], "Radau", rtol=1e-10, atol=1e-12)
    assert [run["fast.y"][-1], run["slow.y"][-1]] == pytest.approx(whole.y[:, -1], abs=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_delayed_wire_begins_with_the_value_of_the_input(compiled):
    parts = {"lag": BlockPart(Lag("N", "N", 0.1, 1.0), 1e-3), "gain": BlockPart(Gain("N", "N"), 1e-3)}
    wires = [Wire("gain.y", "lag.u"), Wire("lag.y", "gain.u", 7.0, FACTOR, OFFSET)]
    run = CoupledParts(parts, wires, order=1, step=0.01, compiled=compiled).run(0.05)
    factor = parts["gain"].block.params.factor
    assert run["gain.y"][0] == factor * 7.0
    assert run["gain.y"][1:] == pytest.approx(factor * (FACTOR * run["lag.y"][:-1] + OFFSET), rel=1e-14)


# --- inputs in a step ---

H, TIMES = 0.3, [0.0, -0.2, -0.5]
MASTER_KINDS = Master, CallingMaster
KINDS = {  # (delayed, its source has stepped)
    "extrapolated": (False, False),
    "interpolated": (False, True),
    "delayed": (True, False),
    "delayed, after its source": (True, True),
}


def expected(kind, order, reached, past):
    delayed, stepped = KINDS[kind]
    if delayed:
        return [past[0], *[0.0] * order]
    values, times = ([reached, *past], [H, *TIMES]) if stepped else (past, TIMES)
    return polynomial(values[: order + 1], times[: order + 1])


class Pair:
    """Two numbers, y, and no input."""

    params, inputs, outputs = Factor(), {}, {"y": Signal((2,), "N")}

    def initial(self) -> State:
        return {}

    def flow(self, t: Any, p: Any, x: Any, u: Any) -> Any:
        return {}, {"y": np.zeros(2)}


class Taking:
    """A part with an input of each kind, and one that nothing drives; it follows polynomials up to an order."""

    feedthrough = frozenset[tuple[str, str]]()

    def __init__(self, kinds: Sequence[str], order: int) -> None:
        self.outputs: Signals = {}
        self.order, self.inputs = order, {kind: Signal((2,), "N") for kind in (*kinds, "open")}


@pytest.mark.parametrize("least", [0, 1, 2])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), list(KINDS), []], ids="+".join)
def test_each_input_has_its_own_polynomial(order, kinds, least):
    """In the master that is compiled as a whole, and in the one that calls its parts."""
    rng = np.random.default_rng(order)
    sources = {kind: "before" if stepped else "after" for kind, (_, stepped) in KINDS.items()}
    wires = [Wire(f"{sources[kind]}.y", f"taking.{kind}", 7.0 if KINDS[kind][0] else None) for kind in kinds]
    parts: Any = {"before": BlockPart(Pair(), 1e-3), "taking": Taking(kinds, least), "after": BlockPart(Pair(), 1e-3)}
    couplings = checked(parts, wires, list(parts))
    parts["taking"] = HeldPart("taking", parts["taking"], couplings)
    for master in MASTER_KINDS:
        made = master(parts, couplings, Scheme(order, True, tuple(parts)), [], compiled=master is CallingMaster)
        values, reached = rng.normal(size=(3, made.outputs.size)), rng.normal(size=2)
        memory = made.layout.unpack(np.zeros(made.layout.size))
        memory["values"], memory["lengths"] = values, -np.diff(TIMES)
        found = made.stages[1].inputs(made.layout.pack(memory), np.array(H), reached)
        wanted = [
            expected(kind, min(order, least), reached[k], values[:, made.outputs.index(sources[kind], "y")[k]])
            for kind in kinds
            for k in range(2)
        ]
        np.testing.assert_allclose(found, np.reshape(wanted, (-1, min(order, least) + 1)).T, rtol=1e-13)
