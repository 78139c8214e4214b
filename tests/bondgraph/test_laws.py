"""Laws as text and tables, on numbers, in machine code, and their derivatives; hysteresis."""

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline, PchipInterpolator

from cosim import Rig
from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.core.interpolation import INTERPOLATIONS, LookupTable
from cosim.mechanics.bondgraph import Law, assemble
from cosim.mechanics.bondgraph.components import play, relay
from cosim.mechanics.bondgraph.equations import Function, Variable, _chain_rule
from cosim.mechanics.bondgraph.expressions import Names, law
from tests.bondgraph.graphs import refused_in_file
from tests.bondgraph.simulation import Simulation
from tests.kit.messages import Said

X = np.array([-2.0, -1.0, 0.0, 0.5, 2.0, 4.0])
Y = np.array([1.0, 3.0, -1.0, 2.0, 2.5, 0.0])
AT = np.concatenate([np.linspace(-1.99, 3.99, 29), X])


def compiled(fn: Callable[..., Any], *names: str) -> Callable[..., float]:
    made = compile(lambda *x: ops.array([fn(*x)]), [ArrayPort(name, ()) for name in names], "f", interpret=False)
    return lambda *x: float(np.asarray(made(*map(np.array, x))).ravel()[0])


# Python's own evaluation is the reference
EXPRESSIONS = [
    *("a + b * 2 ^ 3 ^ 2", "-a ^ 2", "a % b", "-a % b", "a // b", "a if a > b else b", "1 < a < b", "1 < a <= 2 < b"),
    *("a > 1 and b > 1", "a > 1 or b > 1 and a < b", "not a > b", "not (a > 0 and b > 0) or a == b", "a != b"),
    *("min(a, b, 0.3)", "max(a, b, 0.3, a * b)", "hypot(a, b)", "round(a)", "round(b)", "(a > 0) + (b > 0)"),
    *("(a > 0) - (b > 0)", "a if b else -1", "3 if a > 0 else 4 if b > 0 else 5", "floor(a) + ceil(b)"),
]  # fmt: skip
NUMBERS = (-2.5, -1.0, 0.5, 1.0, 1.5, 2.0, 2.5, 0.49999999999999994, 7.0)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_have_the_values_of_python_in_both_engines(text: str) -> None:
    found = law(text)
    machine = compiled(found.fn, *found.uses)
    known = {**{name: getattr(math, name) for name in ("hypot", "floor", "ceil")}, "min": min, "max": max}
    for a, b in product(NUMBERS, NUMBERS):
        own = {"a": a, "b": b}
        expected = float(eval(text.replace("^", "**"), {"__builtins__": {"round": round}, **known}, own))
        given = [own[name] for name in found.uses]
        assert float(found.fn(*map(np.float64, given))) == pytest.approx(expected, rel=1e-15, abs=1e-15)
        assert machine(*given) == pytest.approx(expected, rel=1e-15, abs=1e-15)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("30 deg", math.pi / 6.0), ("2 mm + 3mm", 0.005), ("2 m*a", 6.0), ("-2 N*m/rad * a", -6.0)),
        *(("1.5e3 mm", 1.5), ("2 m^2", 2.0), ("3 mm² * 1e6", 3.0), ("1 if a > 2 mm else 0", 1.0), ("2 min", 120.0)),
        *(("mod(5 rad, 2)", 1.0), ("0x10 + 1_0", 26.0), ("a1 + 1", 8.0), ("6000 rpm/2", 100.0 * math.pi)),
        *(("1 bar / 1 kPa", 100.0), ("2 N·m", 2.0)),
    ],
)  # fmt: skip
def test_numbers_have_units(text: str, value: float) -> None:
    found = law(text, Names({"a": 3.0, "a1": 7.0}))
    assert found.uses == ()
    assert found.fn() == pytest.approx(value, rel=1e-14)


WRONG = [
    *("2 s^2", "3 furlong", "2 mm_x", "max(1)", "clip(flow, 1, 0)", "0/0", "1 % 0", "9**9**9", "sqrt(-1)", "curve"),
    *("5 °C", "20 degC + 1"),
    *("interp(1, [0, 2], [0, 4])", "curve(1, 2)", "curv(1)", "lambda: 1", "(1).__class__", "a = 1", "1 is 1"),
    *("flow.real[0]", "2 for a", "print(1)", "min(a, key=b)", "'a' if 1 else 2", "1 if", "1 in 2", "[k for k in a]"),
]  # fmt: skip


def test_wrong_expressions_are_refused(said: Said) -> None:
    tables = {"curve": LookupTable((X,), Y)}
    for text in WRONG:
        with pytest.raises(ValueError) as error:
            law(text, Names({}, tables))
        said(f"{text}: {error.value}")


# --- tables ------------------------------------------------------------------------------------------

SCIPY: dict[str, Callable[..., Any]] = {
    "linear": lambda x, y: lambda at, order=0: np.interp(at, x, y),
    "cubic": lambda x, y: CubicSpline(x, y, bc_type="natural"),
    "pchip": PchipInterpolator,
}


@pytest.mark.parametrize("kind", INTERPOLATIONS)
def test_a_table_is_what_scipy_has(kind: Any) -> None:
    table, reference = LookupTable((X,), Y, kind), SCIPY[kind](X, Y)
    machine = compiled(table, "x")
    for x in AT:
        assert table(x) == pytest.approx(float(reference(x)), abs=1e-14)
        assert machine(x) == pytest.approx(float(reference(x)), abs=1e-14)


@pytest.mark.parametrize("kind", INTERPOLATIONS)
def test_the_rate_of_a_table_is_exact_also_at_its_points(kind: Any) -> None:
    """Of linear tables the slope to the right."""
    found = law("2 * curve(flow)", Names({}, {"curve": LookupTable((X,), Y, kind)}))
    rate = _chain_rule(Function(found.fn, (Variable("f", 0),)))
    machine = compiled(rate.fn, "x", "v")
    for x in AT[X[-1] > AT]:
        k = int(np.searchsorted(X, x, "right")) - 1
        secant = (Y[k + 1] - Y[k]) / (X[k + 1] - X[k])
        expected = 6.0 * (secant if kind == "linear" else float(SCIPY[kind](X, Y)(x, 1)))
        assert rate.fn(np.array(x), np.array(3.0)) == pytest.approx(expected, abs=1e-12)
        assert machine(x, 3.0) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", INTERPOLATIONS)
def test_beyond_its_points_a_table_holds_continues_or_is_not_a_number(kind: Any) -> None:
    """A value that is not a number passes through."""
    first, last = (table_slope(kind, end) for end in (0, -1))
    for outside, below, above in (
        ("hold", 1.0, 0.0),
        ("linear", 1.0 - 3.0 * first, last),
        ("error", math.nan, math.nan),
    ):
        table = LookupTable((X,), Y, kind, outside)  # type: ignore[arg-type]
        for fn in (table, compiled(table, "x")):
            found = [float(fn(x)) for x in (-5.0, -2.0, 4.0, 5.0, math.nan)]
            assert found == pytest.approx([below, 1.0, 0.0, above, math.nan], abs=1e-12, nan_ok=True)


def table_slope(kind: str, end: int) -> float:
    if kind == "linear":
        return float((np.diff(Y) / np.diff(X))[end])
    return float(SCIPY[kind](X, Y)(X[end], 1))


@pytest.mark.parametrize("kind", INTERPOLATIONS)
def test_a_table_over_two_axes_is_that_over_one_along_each_line_of_its_grid(kind: Any) -> None:
    second = np.array([0.0, 1.0, 1.5, 4.0])
    z = np.random.default_rng(1).normal(size=(len(X), len(second)))
    table = LookupTable((X, second), z, kind)
    machine = compiled(table, "x", "y")
    for k, x in enumerate(X):
        for y in np.linspace(0.0, 4.0, 9):
            expected = float(SCIPY[kind](second, z[k])(y))
            assert table(x, y) == pytest.approx(expected, abs=1e-13)
            assert machine(x, y) == pytest.approx(expected, abs=1e-13)
    for k, y in enumerate(second):
        for x in AT:
            assert machine(x, y) == pytest.approx(float(SCIPY[kind](X, z[:, k])(x)), abs=1e-13)
    if kind != "pchip":  # a product of two interpolations, whatever the order
        for x, y in product((-1.7, 0.2, 3.0), (0.4, 1.2, 3.3)):
            along = [float(SCIPY[kind](X, column)(x)) for column in z.T]
            assert machine(x, y) == pytest.approx(float(SCIPY[kind](second, along)(y)), abs=1e-13)


RIG = """
name: l
mechanism: {gravity: [0, 0, 0], bodies: [{name: m, joint: s, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 0.1]}]}
joints:
  s:
    initial: {position: 0.5, velocity: 2}
    actuator:
      type: bond_graph
      graph:
        constants: {gain: 2}
        tables:
TABLES
        elements: {brake: {type: R, domain: rotational, law: LAW}}
        bonds: [joint -> brake]
        signals: {y: {law: gain * curve(velocity), unit: N*m}}
schedule: {step: 1 ms, duration: 0.5 s}
"""
CURVE = "          curve: {x: [0, 1 rad/s, 100 rpm], y: [0, 0.2, 0.5], interpolation: pchip}"


def rig_text(tables: str = CURVE, law: str = "gain * curve(flow)") -> str:
    return RIG.replace("TABLES", tables).replace("LAW", law)


def test_a_rig_brakes_by_a_table(rig_of: Callable[..., Rig]) -> None:
    """J ω̇ = −2 M(ω), integrated by SciPy; energy closes."""
    run = rig_of(rig_text()).run()
    table = PchipInterpolator([0.0, 1.0, 100.0 * math.pi / 30.0], [0.0, 0.2, 0.5])
    found = solve_ivp(lambda t, w: -2.0 * table(w) / 0.1, (0.0, run.t[-1]), [2.0], rtol=1e-10, atol=1e-12)
    assert run["s/velocity"][-1] == pytest.approx(found.y[0, -1], rel=1e-6)
    assert run["s/y"][-1] == pytest.approx(2.0 * float(table(run["s/velocity"][-1])), rel=1e-12)


def test_a_table_comes_from_a_file(rig_of: Callable[..., Rig], tmp_path: Path) -> None:
    (tmp_path / "brake.csv").write_text("speed,other,torque\n0,7,0\n60,7,0.2\n100,7,0.5\n")
    at = "          curve: {file: FILE, x: speed, y: torque, units: {speed: rpm, torque: N*m}}"
    from_file = rig_of(rig_text(at.replace("FILE", str(tmp_path / "brake.csv")))).run()
    written = rig_of(rig_text("          curve: {x: [0, 60 rpm, 100 rpm], y: [0, 0.2, 0.5]}")).run()
    assert np.array_equal(from_file["s/velocity"], written["s/velocity"])


def test_a_table_over_two_axes_comes_from_rows_of_a_file(rig_of: Callable[..., Rig], tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("x,y,z\n0,0,0\n0,1,1\n5,0,2\n5,1,3\n")
    at, law = f"          curve: {{file: {tmp_path / 'map.csv'}, z: z}}", "'curve(flow, position)'"
    rig = rig_text(at, law).replace("gain * curve(velocity)", "'gain * curve(velocity, position)'")
    run = rig_of(rig).run()
    velocity, position = run["s/velocity"][-1], run["s/position"][-1]
    assert run["s/y"][-1] == pytest.approx(
        2.0 * (np.clip(0.4 * velocity, 0.0, 2.0) + np.clip(position, 0.0, 1.0)), rel=1e-12
    )


def test_graphs_inside_and_components_have_the_tables_of_the_graph_around(rig_of: Callable[..., Rig]) -> None:
    """An input of the graph inside has precedence over a constant of this name."""
    inner = (
        "{brake: {graph: {inputs: {velocity: rad/s}, junctions: {shaft: 1}, ports: {shaft: shaft}, "
        "elements: {r: {type: R, domain: rotational, law: gain * curve(velocity)}}, bonds: [shaft -> r]}}}"
    )
    text = (
        rig_text()
        .replace("gain: 2", "gain: 2, velocity: 7")
        .replace("elements: {brake: {type: R, domain: rotational, law: gain * curve(flow)}}", "components: " + inner)
    )
    text = text.replace("bonds: [joint -> brake]", "bonds: [joint -> brake.shaft]")
    assert np.array_equal(rig_of(text).run()["s/velocity"], rig_of(rig_text()).run()["s/velocity"])


@pytest.mark.parametrize(
    "tables",
    [
        "          curve: {x: [0, 1], y: [0, 1, 2]}",
        "          curve: {x: [0, 1, 1], y: [0, 1, 2]}",
        "          curve: {x: [0], y: [0]}",
        "          curve: {x: [0, 1], y: [0, 1], interpolation: spline}",
        "          curve: {x: [0, 1], y: [0, 1], outside: clamp}",
        "          curve: {x: [0, 1 furlong], y: [0, 1]}",
        "          curve: {x: [0, 1], z: [0, 1]}",
        "          curve: {x: [0, 1], y: [0, 1], z: [[0, 1], [0]]}",
        "          curve: {x: [0, 1], y: [0, 1], z: [[0, 1]]}",
        "          curve: {x: [0, 1], y: [0, 1], zz: 1}",
        "          curve: {file: nothing.csv}",
        "          sin: {x: [0, 1], y: [0, 1]}",
        "          curve: [0, 1]",
        "          curve: {x: [0, .nan], y: [0, 1]}",
    ],
)
def test_wrong_tables_are_refused_with_their_place(rig_of: Callable[..., Rig], said: Said, tables: str) -> None:
    refused_in_file(rig_of, rig_text(tables), said)


# --- hysteresis --------------------------------------------------------------------------------------

PERIOD = 1.0


def swung(component: Any, steps: int = 2000) -> Simulation:
    """Over two periods of the input sin(2π t)."""
    times = np.linspace(0.0, 2.0 * PERIOD, steps + 1)
    return Simulation(assemble(component), times, method="LSODA", rtol=1e-9, max_step=1e-4)


def test_a_relay_switches_at_its_two_thresholds() -> None:
    lag = 1e-3
    wave = Law(lambda t: ops.sin(2.0 * math.pi * t), ("t",))
    found = swung(relay.build(relay.Params(wave, 0.5, -0.2, lag)))
    on, t = found["state.displacement"] > 0.5, found.t
    switched = t[1:][np.diff(on.astype(int)) != 0]
    up = math.asin(0.5) / (2.0 * math.pi)
    down = 0.5 + math.asin(0.2) / (2.0 * math.pi)
    expected = np.array([up, down, 1.0 + up, 1.0 + down]) + lag * math.log(2.0)
    assert switched == pytest.approx(expected, abs=1.1e-3)  # a step of the samples


def test_play_stays_within_its_gap_and_turns_after_its_width() -> None:
    lag, width = 1e-4, 0.6
    wave = Law(lambda t: ops.sin(2.0 * math.pi * t), ("t",))
    found = swung(play.build(play.Params(wave, width, lag)))
    u, w, late = np.sin(2.0 * math.pi * found.t), found["state.displacement"], lag * 2.0 * math.pi
    assert np.max(np.abs(u - w)) < 0.5 * width + 1.01 * late
    at_top = (found.t > 0.25) & (np.arange(len(u)) < 1000) & (u > 1.0 - width)
    assert w[at_top] == pytest.approx(0.7, abs=late)


HYSTERESIS = """
name: h
mechanism: {gravity: [0, 0, 0], bodies: [{name: m, joint: s, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 0.1]}]}
joints:
  s:
    initial: {position: 0, velocity: 1}
    actuator:
      type: bond_graph
      graph:
        components:
          switch: {type: relay, input: position, on: 0.2, off: -0.2, time_constant: 2 ms}
          gap: {type: play, input: position, width: 0.1, time_constant: 2 ms}
        elements:
          motor: {type: Se, domain: rotational, law: -1 if switch.value.effort > 0.5 else 1}
          bouc_wen: {type: Sf, domain: signal, law: 500 * velocity - 300 * abs(velocity) * z.effort - 100 * velocity * abs(z.effort)}
          z: {type: C, domain: signal, stiffness: 1}
          torque: {type: R, domain: rotational, law: 0.2 * z.effort}
        junctions: {memory: 0, shaft: 1}
        bonds: [bouc_wen -> memory -> z, motor -> shaft -> torque, shaft -> joint]
      signals: {switch: switch.value.effort, gap: gap.value.effort, z: z.effort}
schedule: {step: 0.2 ms, duration: 2 s}
"""  # noqa: E501


def test_hysteresis_in_a_rig_is_what_scipy_integrates(rig_of: Callable[..., Rig]) -> None:
    """A relay swings a joint between its thresholds; a play follows; the model of Bouc and Wen resists."""
    run = rig_of(HYSTERESIS).run()

    def rates(t: float, y: np.ndarray) -> list[float]:
        q, v, s, w, z = y
        target = 1.0 if q > 0.2 else 0.0 if q < -0.2 else float(s > 0.5)
        away = q - w
        torque = (-1.0 if s > 0.5 else 1.0) - 0.2 * z
        rate = 500.0 * v - 300.0 * abs(v) * z - 100.0 * v * abs(z)
        return [v, torque / 0.1, (target - s) / 2e-3, (away - np.clip(away, -0.05, 0.05)) / 2e-3, rate]

    found = solve_ivp(rates, (0.0, run.t[-1]), [0.0, 1.0, 0.0, 0.0, 0.0], rtol=1e-9, atol=1e-10, max_step=2e-4)
    assert np.ptp(run["s/switch"]) > 0.99  # it has switched
    for signal, expected in zip(("position", "velocity", "switch", "gap", "z"), found.y, strict=True):
        assert run[f"s/{signal}"][-1] == pytest.approx(expected[-1], rel=2e-3, abs=2e-3)  # events are not located
    assert np.max(np.abs(run["s/position"] - run["s/gap"])) < 0.05 + 1.1 * 2e-3 * np.max(np.abs(run["s/velocity"]))
