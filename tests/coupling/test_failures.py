"""Parts that fail, diverge or hang end the run with one line."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.core.types import Signal
from cosim.simulation.coupling import BlockPart, CoupledParts, Wire
from tests.kit.coupled import Lag, SampledGain
from tests.kit.refusals import raised

WIRES = [Wire("a.y", "b.u"), Wire("b.y", "a.u")]


class PythonPart:
    """y = t at the end of each step; a part by its contract alone."""

    order, repeats, variable = 0, False, True
    feedthrough = frozenset[tuple[str, str]]()

    def __init__(self) -> None:
        self.inputs, self.outputs = {"u": Signal((), "N")}, {"y": Signal((), "N")}
        self.closed = False

    def start(self, t: float, inputs: Any) -> dict[str, Any]:
        return {"y": np.array(t)}

    def step(self, t: float, h: float, inputs: Any) -> dict[str, Any]:
        return self.result(t + h)

    def result(self, t: float) -> dict[str, Any]:
        return {"y": np.array(t)}

    def save(self) -> object: ...
    def restore(self, saved: object) -> None: ...

    def close(self) -> None:
        self.closed = True


def coupled(part: PythonPart, **settings: Any) -> CoupledParts:
    return CoupledParts({"a": part, "b": BlockPart(Lag("N", "N"), 1e-3)}, WIRES, step=0.01, **settings)


class Diverging(PythonPart):
    def result(self, t: float) -> dict[str, Any]:
        return {"y": np.array(np.nan if t > 0.025 else t)}


class Raising(PythonPart):
    def result(self, t: float) -> dict[str, Any]:
        raise ValueError("no such table")


class Silent(PythonPart):
    def result(self, t: float) -> dict[str, Any]:
        return {}


class Wrong(Lag):
    def flow(self, t: Any, p: Any, x: Any, u: Any) -> Any:
        rates, outputs = super().flow(t, p, x, u)
        return rates, {"z": outputs["y"]}


PLACE = r"(?<=\()[^()]*test_failures.py:\d+"


@pytest.mark.parametrize("kind", [Diverging, Raising, Silent])
@pytest.mark.parametrize("settings", [{}, {"time_limit": 60.0}], ids=["", "with a limit"])
def test_a_part_that_fails_is_named_with_the_time_in_one_line(kind, settings, said):
    part = kind()
    with pytest.raises(RunError) as error:
        coupled(part, **settings).run(0.1)
    said(error.value, PLACE)
    assert error.value.exit_code == 1 and part.closed and "\n" not in str(error.value)


def test_a_block_with_other_outputs_than_it_declares_is_named(said):
    parts = {"a": BlockPart(Wrong("N", "N"), 1e-3), "b": BlockPart(Lag("N", "N"), 1e-3)}
    with pytest.raises(RunError) as error:
        CoupledParts(parts, [Wire("a.y", "b.u", 0.0), Wire("b.y", "a.u", 0.0)]).run(0.1)
    said(error.value, PLACE)


def test_a_part_that_hangs_ends_the_run_and_is_left_alone(clock, said):
    released = threading.Event()

    class Hanging(PythonPart):
        def result(self, t: float) -> dict[str, Any]:
            if t > 0.025:
                clock.now += 1.0
                released.wait(60.0)
            return super().result(t)

    part = Hanging()
    said(raised(RunError, lambda: coupled(part, time_limit=0.2).run(0.1)))
    assert not part.closed
    released.set()


def test_a_time_limit_changes_no_numbers():
    plain, limited = (coupled(PythonPart(), **settings).run(0.05) for settings in ({}, {"time_limit": 5.0}))
    assert limited["b.y"].tolist() == plain["b.y"].tolist()


@pytest.mark.parametrize("compiled", [True, False])
def test_blocks_that_diverge_are_named_with_the_time(compiled):
    """A sampled gain of −1e60 on a lag: a loop that overflows within a few steps."""
    parts = {"a": BlockPart(SampledGain("N", "N", -1e60), 0.01), "b": BlockPart(Lag("N", "N", 0.1, 1.0), 0.01)}
    with pytest.raises(RunError, match=r"^part '[ab]' diverged: its output 'y' is -?(inf|nan) at t = [0-9.]+ s$"):
        CoupledParts(parts, WIRES, "jacobi", 0, 0.01, compiled=compiled).run(0.5)


def test_threads_of_time_limits_end_with_their_calls():
    before = threading.active_count()
    coupled(PythonPart(), time_limit=5.0).run(0.05)
    for _ in range(3000):
        if threading.active_count() <= before:
            break
        time.sleep(0.01)
    assert threading.active_count() <= before
