"""Controllers: commands computed by hand for coupled pendulums, numeric and traced."""

import dataclasses
import importlib
import math
from types import ModuleType, SimpleNamespace
from typing import Any, get_type_hints

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import ControllerContext, Limits
from tests.kit.messages import Said
from tests.kit.plugins import modules, name_of
from tests.kit.refusals import raised

INERTIA = np.array([[2.0, 0.3, 0.0], [0.3, 1.5, 0.2], [0.0, 0.2, 0.8]])
WEIGHT = np.array([9.0, 5.0, 2.0])
DAMPING = np.array([0.5, 0.25, 0.125])
STIFFNESS = np.array([3.0, 0.75, 2.0])


class Pendulums:
    """Three coupled pendulums: INERTIA a + v² + WEIGHT sin q = effort."""

    nv = 3
    constraint_rows = ()

    def coordinates(self, chart: Any) -> Any:
        return chart

    @property
    def equations(self) -> Any:
        return self

    def inverse_dynamics(self, q: Any, v: Any, qdd: Any, t: Any = 0.0) -> Any:
        return INERTIA @ qdd + v * v + WEIGHT * ops.sin(q) + STIFFNESS * q

    def hybrid_dynamics(self, q: Any, v: Any, qdd: Any, tau: Any, prescribed: Any, t: Any = 0.0) -> tuple[Any, Any]:
        rows = ops.where(ops.array([[moved] * 3 for moved in prescribed]), np.eye(3), INERTIA)
        qdd = ops.solve(rows, ops.where(prescribed, qdd, tau - self.inverse_dynamics(q, v, np.zeros(3))))
        return qdd, self.inverse_dynamics(q, v, qdd)

    def friction_effort(self, v: Any) -> Any:
        return DAMPING * v


def context(*index: int, effort: float = 50.0, prescribed: tuple[int, ...] = ()) -> ControllerContext:
    joints = tuple("abc"[k] for k in index)
    n = len(index)
    limits = Limits(np.full(n, -3.0), np.full(n, 3.0), np.full(n, 5.0), np.full(n, effort))
    return ControllerContext(joints, np.array(index), Pendulums(), 0.01, limits, np.isin(range(3), prescribed))


def module(name: str) -> ModuleType:
    return importlib.import_module(f"cosim.plugins.controllers.{name}")


def make(name: str, where: ControllerContext, **keys: Any) -> Any:
    return module(name).load(module(name).Params(**keys), where)


def gains(n: int, **more: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    return {"kp": tuple(100.0 + k for k in range(n)), "kd": tuple(10.0 + k for k in range(n)), **more}


INPUTS = {
    "all_position": np.array([0.3, -0.7, 1.1]),
    "all_velocity": np.array([0.4, 0.9, -0.6]),
    "all_acceleration": np.array([0.0, 6.0, 0.0]),  # known only where it is prescribed
    "all_effort": np.array([8.0, 0.0, 7.0]),
    "all_locked": np.zeros(3),
    "position": np.array([1.1, 0.3]),
    "velocity": np.array([-0.6, 0.4]),
    "effort": np.array([7.0, 8.0]),
    "reference_position": np.array([1.0, 0.5]),
    "reference_velocity": np.array([-0.5, 0.2]),
    "reference_acceleration": np.array([3.0, -2.0]),
    "reference_effort": np.array([0.25, -0.5]),
}
CASES = {
    "feedforward_pd": gains(2),
    "feedforward_pd without friction": {**gains(2), "friction": False},
    "computed_torque": {"bandwidth": (3.0, 2.0), "damping": (1.0, 0.5)},
    "computed_torque without friction": {"bandwidth": (3.0, 2.0), "damping": (1.0, 0.5), "friction": False},
    "pd_gravity": gains(2),
    "pid": gains(2, ki=(5.0, 6.0), integral_limit=(1.0, 2.0)),
    "pid without a bound": gains(2, ki=(5.0, 6.0)),
    "passthrough": gains(2),
    "passthrough of velocity": {**gains(2), "interface": "velocity"},
    "passthrough of effort": {"interface": "effort"},
}


def step(block: Any, state: dict[str, Any] | None = None, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """One update with just the inputs that the block declares."""
    given = {**INPUTS, **inputs}
    u = {name: given[name] for name in block.inputs}
    return block.update(0.0, block.params, block.initial() if state is None else state, u)


@pytest.mark.parametrize("name", [name_of(found) for found in modules("cosim.plugins.controllers")])
def test_parameters_have_types_units_and_descriptions(name: str) -> None:
    hints = get_type_hints(module(name).Params, include_extras=True)
    for field in dataclasses.fields(module(name).Params):
        assert field.name in hints
        assert field.metadata["doc"]


@pytest.mark.parametrize("case", CASES)
def test_what_a_controller_does_not_look_at_it_does_not_command(case: str) -> None:
    block = make(case.split()[0], context(2, 0), **CASES[case])
    assert "reference_effort" in block.inputs
    _, command = step(block)
    for what in ("position", "velocity"):
        expected = INPUTS[f"reference_{what}"] if f"reference_{what}" in block.inputs else np.zeros(2)
        np.testing.assert_array_equal(command[what], expected)


# --- feedforward and PD -------------------------------------------------------------------------


def required(q: Any, v: Any, a: Any) -> Any:
    """Effort of the actuators, without friction, by hand."""
    return INERTIA @ a + v**2 + WEIGHT * np.sin(q) + STIFFNESS * q


def with_passive(q: Any, v: Any, a: Any, effort: float = 0.0) -> Any:
    """The accelerations, including joint b's, which moves under this effort, its friction and its spring."""
    a[1] = 0.0
    a[1] = (effort - DAMPING[1] * v[1] - required(q, v, a)[1]) / INERTIA[1, 1]
    return a


def test_feedforward_pd_of_all_joints_is_the_inverse_dynamics_of_the_reference() -> None:
    block = make("feedforward_pd", context(0, 1, 2), **gains(3))
    q, v, a = np.array([0.1, 0.2, 0.3]), np.array([1.0, -1.0, 2.0]), np.array([4.0, 5.0, -6.0])
    _, command = step(
        block, reference_position=q, reference_velocity=v, reference_acceleration=a, reference_effort=np.zeros(3)
    )
    np.testing.assert_allclose(command["effort"], required(q, v, a) + DAMPING * v)
    np.testing.assert_array_equal(command["kp"], [100.0, 101.0, 102.0])
    np.testing.assert_array_equal(command["kd"], [10.0, 11.0, 12.0])


@pytest.mark.parametrize("effort", [0.0, 1.5])
def test_feedforward_pd_moves_other_joints_under_their_measured_effort(effort: float) -> None:
    block = make("feedforward_pd", context(2, 0), **gains(2), friction=False)
    _, command = step(block, all_effort=np.array([8.0, effort, 7.0]))
    q, v = np.array([0.5, -0.7, 1.0]), np.array([0.2, 0.9, -0.5])  # a and c by the reference, b as measured
    expected = required(q, v, with_passive(q, v, np.array([-2.0, 0.0, 3.0]), effort))
    assert expected[1] == pytest.approx(effort - DAMPING[1] * v[1], abs=1e-12)
    np.testing.assert_allclose(command["effort"], expected[[2, 0]] + INPUTS["reference_effort"], rtol=1e-13)


def test_feedforward_pd_moves_a_prescribed_joint_with_its_known_acceleration() -> None:
    block = make("feedforward_pd", context(2, 0, prescribed=(1,)), **gains(2), friction=False)
    _, command = step(block)
    q, v, a = np.array([0.5, -0.7, 1.0]), np.array([0.2, 0.9, -0.5]), np.array([-2.0, 6.0, 3.0])
    effort = required(q, v, a)
    np.testing.assert_allclose(command["effort"], effort[[2, 0]] + INPUTS["reference_effort"], rtol=1e-13)
    _, other = step(block, all_acceleration=np.array([0.0, 7.0, 0.0]))
    np.testing.assert_allclose(other["effort"] - command["effort"], INERTIA[[2, 0], 1], rtol=1e-12)


def test_feedforward_pd_takes_locked_joints_as_at_rest_where_they_are_measured() -> None:
    """b is passive, c is commanded: both are locked, so that only a moves."""
    block = make("feedforward_pd", context(2, 0), **gains(2), friction=False)
    _, command = step(block, all_locked=np.array([0.0, 1.0, 1.0]))
    q, v, a = np.array([0.5, -0.7, 1.1]), np.array([0.2, 0.0, 0.0]), np.array([-2.0, 0.0, 0.0])
    expected = required(q, v, a)[[2, 0]] + INPUTS["reference_effort"]
    np.testing.assert_allclose(command["effort"], expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("name", "keys"), [("feedforward_pd", gains(2)), ("computed_torque", {"bandwidth": (3.0, 2.0), "damping": (1, 1)})]
)
def test_the_friction_of_the_controlled_joints_is_that_of_the_reference_velocity(name: str, keys: Any) -> None:
    where = context(2, 0)
    _, with_friction = step(make(name, where, **keys))
    _, without = step(make(name, where, **keys, friction=False))
    expected = DAMPING[[2, 0]] * INPUTS["reference_velocity"]
    np.testing.assert_allclose(with_friction["effort"] - without["effort"], expected, rtol=1e-12)


# --- computed torque ----------------------------------------------------------------------------


@pytest.mark.parametrize("prescribed", [(), (1,)])
def test_computed_torque_is_the_inverse_dynamics_at_the_measured_state(prescribed: tuple[int, ...]) -> None:
    keys: Any = {"bandwidth": (3.0, 2.0), "damping": (1.0, 0.5), "friction": False}
    _, command = step(make("computed_torque", context(2, 0, prescribed=prescribed), **keys))
    q, v, omega = INPUTS["all_position"], INPUTS["all_velocity"], 2.0 * np.pi * np.array([3.0, 2.0])
    error, rate = (INPUTS[f"reference_{name}"] - INPUTS[name] for name in ("position", "velocity"))
    wanted = INPUTS["reference_acceleration"] + 2.0 * np.array([1.0, 0.5]) * omega * rate + omega**2 * error
    a = np.array([wanted[1], INPUTS["all_acceleration"][1], wanted[0]])
    effort = required(q, v, a if prescribed else with_passive(q, v, a))
    np.testing.assert_allclose(command["effort"], effort[[2, 0]] + INPUTS["reference_effort"], rtol=1e-12)
    np.testing.assert_array_equal(command["kp"], [0.0, 0.0])
    np.testing.assert_array_equal(command["kd"], [0.0, 0.0])


def test_computed_torque_refuses_a_bandwidth_that_its_period_does_not_allow(said: Said) -> None:
    said(raised(InputError, make, "computed_torque", context(2, 0), bandwidth=(3.0, 10.0), damping=(1.0, 1.0)))
    make("computed_torque", context(2, 0), bandwidth=(3.0, 6.7), damping=(1.0, 1.0))


@pytest.mark.parametrize("damping", [0.1, 0.3, 1.0, 4.0, 100.0])
def test_the_limit_of_the_bandwidth_is_where_the_sampled_loop_begins_to_grow(damping: float) -> None:
    """The double integrator with held acceleration, from the measurement of the period before, for many periods."""
    period = 0.002
    limit = module("computed_torque").largest_bandwidth(damping, period)

    def size_after(bandwidth: float) -> float:
        w = 2.0 * np.pi * bandwidth
        late = [-w * w, -2.0 * damping * w]
        loop = np.array(
            [
                [1.0, period, *(0.5 * period**2 * gain for gain in late)],
                [0.0, 1.0, *(period * gain for gain in late)],
                [1.0, 0.0, 0.0, 0.0],
                [0.0, 1.0, 0.0, 0.0],
            ]
        )
        return float(np.abs(np.linalg.matrix_power(loop, 1_000_000)).max())

    assert size_after(0.999 * limit) < 1e-3
    assert size_after(1.001 * limit) > 1e3


# --- PD with gravity ----------------------------------------------------------------------------


def test_pd_gravity_compensates_gravity_and_springs_at_the_measured_position() -> None:
    _, command = step(make("pd_gravity", context(2, 0), **gains(2)))
    position = INPUTS["all_position"]
    held = (WEIGHT * np.sin(position) + STIFFNESS * position)[[2, 0]]
    np.testing.assert_allclose(command["effort"], held + INPUTS["reference_effort"])
    np.testing.assert_array_equal(command["kp"], [100.0, 101.0])
    np.testing.assert_array_equal(command["kd"], [10.0, 11.0])


# --- PID ----------------------------------------------------------------------------------------


def pid_of_one(effort: float = 50.0, **keys: float) -> Any:
    values = {"kp": 0.0, "ki": 1.0, "kd": 0.0, "integral_limit": math.inf, **keys}
    return make("pid", context(0, effort=effort), **{name: (value,) for name, value in values.items()})


def integral_after(block: Any, error: float, integral: float, **inputs: float) -> float:
    values = dict.fromkeys(INPUTS, 0.0) | {"reference_position": error} | inputs
    state, command = step(block, {"integral": np.array([integral])}, **{k: np.array([v]) for k, v in values.items()})
    assert command["effort"] == pytest.approx(integral + values["reference_effort"])
    return state["integral"].item()


def test_pid_integrates_the_error_by_forward_euler() -> None:
    block = pid_of_one(ki=3.0)
    assert block.initial()["integral"] == [0.0]
    assert integral_after(block, 0.5, 2.0) == pytest.approx(2.0 + 3.0 * 0.5 * 0.01)
    assert integral_after(block, 0.5, 2.0, position=0.75) == pytest.approx(2.0 - 3.0 * 0.25 * 0.01)


def test_pid_commands_the_integral_and_leaves_the_other_terms_to_the_drive() -> None:
    block = make("pid", context(2, 0), **gains(2, ki=(5.0, 6.0)))
    _, command = step(block, {"integral": np.array([1.5, -2.5])})
    np.testing.assert_allclose(command["effort"], np.array([1.5, -2.5]) + INPUTS["reference_effort"])
    np.testing.assert_array_equal(command["kp"], [100.0, 101.0])
    np.testing.assert_array_equal(command["kd"], [10.0, 11.0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_pid_bounds_the_integral(sign: float) -> None:
    block = pid_of_one(ki=100.0, integral_limit=2.5)
    assert integral_after(block, sign * 1.0, sign * 2.0) == sign * 2.5
    assert integral_after(block, 0.0, sign * 9.0) == sign * 2.5


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_pid_does_not_wind_up_against_the_effort_limit(sign: float) -> None:
    block = pid_of_one(effort=10.0, kp=8.0, kd=1.0)
    assert integral_after(block, sign * 1.0, sign * 1.0) == pytest.approx(sign * 1.01)  # 9 of 10: free
    assert integral_after(block, sign * 1.0, sign * 3.0) == sign * 3.0  # 11 of 10: held
    assert integral_after(block, sign * 1.0, sign * 1.0, reference_velocity=sign * 2.0) == sign * 1.0
    assert integral_after(block, sign * 1.0, sign * 1.0, velocity=-sign * 2.0) == sign * 1.0
    assert integral_after(block, sign * 1.0, sign * 1.0, reference_effort=sign * 2.0) == sign * 1.0
    # saturated, but the error pulls back: it unwinds
    assert integral_after(block, -sign * 0.1, sign * 12.0) == pytest.approx(sign * (12.0 - 0.001))


def test_pid_without_an_effort_limit_never_stops_integrating() -> None:
    block = pid_of_one(effort=math.inf, kp=1e6)
    assert integral_after(block, 1.0, 5.0) == pytest.approx(5.01)


# --- passthrough --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interface", "kp", "kd"),
    [("position", [100.0, 101.0], [10.0, 11.0]), ("velocity", [0.0, 0.0], [10.0, 11.0]), ("effort", [0, 0], [0, 0])],
)
def test_passthrough_closes_the_loops_of_its_interface(interface: str, kp: list[float], kd: list[float]) -> None:
    _, command = step(make("passthrough", context(2, 0), **gains(2), interface=interface))
    np.testing.assert_array_equal(command["kp"], kp)
    np.testing.assert_array_equal(command["kd"], kd)
    np.testing.assert_array_equal(command["effort"], INPUTS["reference_effort"])


@pytest.mark.parametrize(
    "keys", [{"kp": (0.0, 0.0)}, {"kp": (1.0, 0.0)}, {"kd": (1.0, 0.0), "interface": "velocity"}], ids=str
)
def test_passthrough_refuses_a_joint_without_gain(keys: dict[str, Any], said: Said) -> None:
    said(raised(InputError, make, "passthrough", context(2, 0), **keys))


def test_an_undamped_position_interface_is_allowed() -> None:
    _, command = step(make("passthrough", context(2, 0), kp=(1.0, 2.0), kd=(0.0, 0.0)))
    np.testing.assert_array_equal(command["kd"], [0.0, 0.0])


def test_controllers_without_a_model_need_none() -> None:
    blind = dataclasses.replace(context(2, 0), model=SimpleNamespace())
    for name, keys in (("pid", gains(2, ki=(1.0, 1.0))), ("passthrough", gains(2))):
        _, command = step(make(name, blind, **keys))
        np.testing.assert_array_equal(command["effort"], INPUTS["reference_effort"])
