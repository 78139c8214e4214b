"""Algebraic loops between parts are found, named, and broken by a delay or by a part with a state."""

from typing import Any

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import Signal
from cosim.simulation.coupling import BlockPart, CoupledParts, Wire
from tests.kit.coupled import BOND, Gain, Lag, TwoMasses
from tests.kit.refusals import raised

LOOP = [Wire("a.y", "b.u"), Wire("b.y", "a.u")]


def gains(names: str = "ab") -> dict[str, BlockPart]:
    return {name: BlockPart(Gain("N", "N"), 1e-3) for name in names}


LOOPS = {
    "two gains": (gains(), LOOP),
    "behind other parts": (
        {"first": BlockPart(Lag("N", "N"), 1e-3), **gains("abc")},
        [Wire("c.y", "first.u"), Wire("b.y", "c.u"), *LOOP],
    ),
    "itself": (gains("a"), [Wire("a.y", "a.u")]),
}


@pytest.mark.parametrize("what", LOOPS)
def test_a_loop_is_named_in_the_order_of_its_signals(what, said):
    said(raised(InputError, CoupledParts, *LOOPS[what]))


def test_a_delayed_wire_breaks_a_loop():
    run = CoupledParts(gains(), [LOOP[0], Wire("b.y", "a.u", initial=2.0)], step=1e-3).run(5e-3)
    assert run["a.y"] == pytest.approx(np.full(6, 2.0))


def test_a_part_with_a_state_breaks_a_loop():
    parts = {"a": BlockPart(Gain("N", "N"), 1e-3), "b": BlockPart(Lag("N", "N", start=1.0), 1e-3)}
    run = CoupledParts(parts, LOOP).run(0.01)
    assert run["b.y"] == pytest.approx(np.ones(11))


def test_feedthrough_through_a_loop_of_the_machine_code_is_found():
    class Summed(Gain):
        """y = 3 u, summed in a loop; z does not depend on u."""

        def __init__(self) -> None:
            super().__init__("N", "N")
            self.outputs = {**self.outputs, "z": Signal((), "N")}

        def flow(self, t: Any, p: Any, x: Any, u: Any) -> Any:
            total = ops.repeat(lambda z, u: z + u, 3, ops.array([0.0 * t]), ops.array([u["u"]]))
            return {}, {"y": total[0], "z": 2.0 * t}

    part = BlockPart(Summed(), 1e-3)
    assert not part.untraceable
    assert part.feedthrough == {("u", "y")}


def test_feedthrough_is_found_by_tracing():
    undamped, damped = (TwoMasses(damping).parts(1e-3) for damping in (0.0, 0.01))
    assert undamped["left"].feedthrough == frozenset()
    assert damped["left"].feedthrough == {("velocity", "force")}
    assert damped["right"].feedthrough == frozenset()
    CoupledParts(damped, [BOND])  # feedthrough one way is no loop
