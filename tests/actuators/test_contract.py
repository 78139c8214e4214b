"""The contract of actuators, for every file of the folder: signals, purity, energy balance, tracing."""

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.core.compile import ArrayPort, compile
from cosim.core.layout import Layout
from cosim.core.types import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, ContinuousBlock
from cosim.core.units import JOINT_DIMENSIONS, UNITS
from tests.kit.plugins import cases

CASES = pytest.mark.parametrize(("module", "params"), cases("cosim.plugins.actuators", 1))
DURATION = 0.3  # s


def inputs_at(t: float) -> dict[str, float]:
    """A joint that swings through all quadrants under a requested effort of another frequency."""
    return {
        "request": 6.0 * math.sin(17.0 * t + 0.4),
        "position": 0.5 * math.sin(8.0 * t),
        "velocity": 4.0 * math.cos(8.0 * t),
    }


MOTIONS: dict[int, list[tuple[float, dict[str, Any]]]] = {}  # by parameters


def prescribed_motion(actuator: Any) -> list[tuple[float, dict[str, Any]]]:
    """(t, state) at times along the motion, computed once."""
    if id(actuator.params) not in MOTIONS:
        MOTIONS[id(actuator.params)] = _prescribed_motion(actuator)
    return MOTIONS[id(actuator.params)]


def _prescribed_motion(actuator: Any) -> list[tuple[float, dict[str, Any]]]:
    start = inputs_at(0.0)
    initial = actuator.initial(start["position"], start["velocity"])
    layout = Layout(initial)
    times = np.linspace(0.0, DURATION, 16)
    if not layout.size:
        return [(t, {}) for t in times]

    def rates(t: float, x: np.ndarray) -> np.ndarray:
        return layout.pack(actuator.flow(t, actuator.params, layout.unpack(x), inputs_at(t))[0])

    # what is asserted holds at any state: these only have to be states of a motion
    found = solve_ivp(rates, (0.0, DURATION), layout.pack(initial), "Radau", times, rtol=1e-2, atol=1e-4)
    assert found.success, found.message
    return [(t, layout.unpack(x)) for t, x in zip(times, found.y.T, strict=True)]


@CASES
def test_signals_units_and_shapes(module: ModuleType, params: Any) -> None:
    actuator = module.load(params)
    assert isinstance(actuator, ContinuousBlock)
    assert actuator.params == params
    assert dict(actuator.inputs) == dict(ACTUATOR_INPUTS)
    assert ACTUATOR_OUTPUTS.items() <= actuator.outputs.items()
    for signal in actuator.outputs.values():
        assert signal.shape == () and signal.unit in {**UNITS, **JOINT_DIMENSIONS}
    assert math.isfinite(actuator.reflected_inertia) and actuator.reflected_inertia >= 0.0
    state = actuator.initial(0.4, -0.2)
    assert set(actuator.positions) <= set(state)
    dx, y = actuator.flow(0.0, actuator.params, state, {"request": 1.0, "position": 0.4, "velocity": -0.2})
    assert dx.keys() == state.keys() and y.keys() == actuator.outputs.keys()
    assert all(np.shape(value) == () for value in (*state.values(), *dx.values(), *y.values()))


@CASES
def test_energy_balance_over_a_prescribed_motion(module: ModuleType, params: Any) -> None:
    """power = effort · velocity + loss + d(stored)/dt, the last by a central difference along the flow; loss ≥ 0."""
    actuator, h = module.load(params), 1e-6
    for t, state in prescribed_motion(actuator):
        u = inputs_at(t)
        dx, y = actuator.flow(t, actuator.params, state, u)
        stored = []
        for step in (-h, h):
            moved = {name: value + step * dx[name] for name, value in state.items()}
            at = {**u, "position": u["position"] + step * u["velocity"]}
            stored.append(float(actuator.flow(t, actuator.params, moved, at)[1]["stored"]))
        change = (stored[1] - stored[0]) / (2.0 * h)
        terms = float(y["power"]), -float(y["effort"]) * u["velocity"], -float(y["loss"]), -change
        scale = sum(map(abs, terms)) + 1e-3 * abs(stored[0]) + 1e-3
        assert abs(sum(terms)) < 1e-5 * scale
        assert y["loss"] >= -1e-12 * scale


@CASES
def test_results_depend_on_the_arguments_alone(module: ModuleType, params: Any) -> None:
    actuator = module.load(params)
    motion = prescribed_motion(actuator)
    first = [actuator.flow(t, actuator.params, state, inputs_at(t)) for t, state in motion]
    copies = [{name: np.array(value) for name, value in state.items()} for _, state in motion]
    again = [actuator.flow(t, actuator.params, state, inputs_at(t)) for t, state in reversed(motion)][::-1]
    assert str(first) == str(again)
    assert all(np.array_equal(state[k], copy[k]) for (_, state), copy in zip(motion, copies, strict=True) for k in copy)


@CASES
def test_traced_results_equal_numeric_results(module: ModuleType, params: Any) -> None:
    actuator = module.load(params)
    layout, names = Layout(actuator.initial(0.0, 0.0)), list(ACTUATOR_INPUTS)

    def flow(t: Any, x: Any, *values: Any) -> tuple[Any, ...]:
        u = dict(zip(names, values, strict=True))
        dx, y = actuator.flow(t, actuator.params, layout.unpack(x), u)
        return layout.pack(dx), *(np.asarray(value) if isinstance(value, float) else value for value in y.values())

    compiled = compile(flow, [ArrayPort("t", ()), ArrayPort("x", (layout.size,)), *(ArrayPort(k, ()) for k in names)])
    for t, state in prescribed_motion(actuator):
        arguments = [np.array(t), layout.pack(state), *(np.array(inputs_at(t)[k]) for k in names)]
        for got, expected in zip(compiled(*arguments), flow(*arguments), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
