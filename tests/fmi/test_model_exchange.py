"""FMUs without a solver: their integration, events and inputs, beside fmpy's simulation and published solutions."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.simulation.coupling.part import Part
from cosim.simulation.fmi.solvers import DormandPrince
from tests.fmi import fmus
from tests.fmi.fmus import opened
from tests.fmi.test_co_simulation import at_times, by_fmpy, constant, simulated

VERSIONS = pytest.mark.parametrize("version", (2, 3))


def exchanged(folder, model: str, version: int, **options) -> Part:
    return opened(fmus.build(folder, model, version), interface="model exchange", **options)


@fmus.needs_gcc
@VERSIONS
@pytest.mark.parametrize(("model", "stop"), (("ball", 2.4), ("oscillator", 2.4), ("stair", 4.0), ("passing", 1.0)))
def test_the_outputs_are_those_that_fmpy_simulates(tmp_path, model, version, stop):
    n = round(stop / 0.02)
    ours = simulated(exchanged(tmp_path, model, version, tolerance=1e-10), n, 0.02)
    path = fmus.build(tmp_path, model, version)
    theirs = by_fmpy(path, 0.02, stop, fmi_type="ModelExchange", relative_tolerance=1e-10)
    for name, values in ours.items():
        np.testing.assert_allclose(values, at_times(theirs, name, 0.02 * np.arange(n + 1)), atol=1e-6)


@fmus.needs_gcc
@VERSIONS
@pytest.mark.parametrize("h", (0.01, 0.3))
def test_a_ball_bounces_at_the_times_of_its_parabolas(tmp_path, version, h):
    """Dropped from 1 m it meets the ground after √(2/g), then after 2 e^k √(2/g) each."""
    ours = simulated(exchanged(tmp_path, "ball", version), round(1.8 / h), h)
    g, e = 9.81, 0.7
    speed = np.sqrt(2.0 * g)
    bounces = np.cumsum([speed / g, *(2.0 * e**k * speed / g for k in range(1, 6))])
    for i, height in enumerate(ours["h"]):
        k = np.searchsorted(bounces, i * h)
        begun, up = (0.0, 0.0) if k == 0 else (bounces[k - 1], e**k * speed)
        exact = (1.0 if k == 0 else 0.0) + up * (i * h - begun) - 0.5 * g * (i * h - begun) ** 2
        assert height == pytest.approx(exact, abs=1e-8)


@fmus.needs_gcc
@VERSIONS
def test_inputs_are_polynomials_inside_a_step(tmp_path, version):
    part = exchanged(tmp_path, "turntable", version)
    assert (part.order, part.repeats, part.variable) == (9, True, True)
    rate = np.array([0.5, -2.0, 9.0, 4.0])
    part.start(0.0, {"rate": rate[0]})
    angle = part.step(0.0, 0.4, {"rate": rate})
    integral = 0.5 * 0.4 - 0.4**2 + 3.0 * 0.4**3 + 0.4**4
    assert angle["angle"] == pytest.approx(integral, rel=1e-10)
    assert angle["double"] == pytest.approx(np.rad2deg(np.polyval(rate[::-1], 0.4)) * 2.0 * 201.168)
    after = part.step(0.4, 0.1, {"rate": constant(1.0)})  # the rate jumps
    part.close()
    assert after["angle"] == pytest.approx(integral + 0.1, rel=1e-10)


@fmus.needs_gcc
@VERSIONS
def test_a_step_with_an_event_can_be_repeated(tmp_path, version):
    part = exchanged(tmp_path, "ball", version)
    part.start(0.0, {})
    part.step(0.0, 0.4, {})
    saved = part.save()
    first = [part.step(0.4, 0.3, {}), part.step(0.7, 0.6, {})]
    part.restore(saved)
    assert [part.step(0.4, 0.3, {}), part.step(0.7, 0.6, {})] == first
    part.close()


@fmus.needs_gcc
def test_a_stiff_model_is_integrated_with_an_implicit_method(tmp_path):
    """Van der Pol's oscillator with mu = 1000, beside LSODA."""
    from scipy.integrate import solve_ivp

    part = exchanged(tmp_path, "oscillator", 2, parameters={"mu": 1000.0}, stiff=True, tolerance=1e-9)
    ours = simulated(part, 10, 100.0)
    theirs = solve_ivp(
        lambda t, x: [x[1], 1000.0 * (1.0 - x[0] ** 2) * x[1] - x[0]],
        (0.0, 1000.0),
        [2.0, 0.0],
        "LSODA",
        np.linspace(0.0, 1000.0, 11),
        rtol=1e-10,
        atol=1e-12,
    )
    np.testing.assert_allclose(ours["x0"], theirs.y[0], rtol=2e-6)


@fmus.needs_gcc
@VERSIONS
def test_a_solution_that_ends_is_named_with_its_time(tmp_path, version):
    """With mu < 0 the oscillator leaves every bound from outside of its limit cycle; beyond 1000 the FMU evaluates
    nothing, and the solver tries shorter steps."""
    part = exchanged(tmp_path, "oscillator", version, parameters={"mu": -1.0, "x0": 3.0})
    part.start(0.0, {})
    with pytest.raises(RunError) as raised:
        for i in range(100):
            part.step(0.1 * i, 0.1, {})
    part.close()
    what = str(raised.value).partition(f" oscillator{version}: ")[2]
    head, _, tail = what.partition(" s with ")
    assert head.startswith("cannot be integrated past t = ")
    assert tail == "steps that are long enough; use stiff=True for a stiff model, or check its parameters"


def test_steps_and_their_interpolation_are_those_of_another_implementation():
    """Scipy's RK45 is the same pair."""
    from scipy.integrate import RK45

    def pendulum(t, x):
        return np.array([x[1], -9.81 * np.sin(x[0]) + t])

    x = np.array([1.0, 0.3])
    ours, theirs = DormandPrince(pendulum, 1e-6, np.full(2, 1e-6)), RK45(pendulum, 0.0, x, 0.1, first_step=0.1)
    theirs.step()
    t, after, inside = ours.step(0.0, x, 0.1)
    assert t == theirs.t == 0.1
    np.testing.assert_allclose(after, theirs.y, rtol=1e-14)
    for s in (0.0, 0.02, 0.07, 0.1):
        np.testing.assert_allclose(inside(s), theirs.dense_output()(s), rtol=1e-12)


def test_the_error_falls_with_the_tolerance():
    for tolerance in (1e-5, 1e-9):
        solver, t, x = DormandPrince(lambda t, x: -x, tolerance, np.full(1, tolerance)), 0.0, np.ones(1)
        while t < 5.0:
            t, x, _ = solver.step(t, x, 5.0)
        assert abs(x[0] - np.exp(-5.0)) < 5.0 * tolerance
