"""Jacobi and Gauss–Seidel against exact motions and each other, and Python against machine code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from cosim.coupling import BlockPart, CoupledParts, EnergyControl, EnergyCorrection, Wire
from cosim.coupling.coupled_parts import MASTERS
from tests.kit.coupled import BOND, Gain, Lag, SampledGain, TwoMasses, quarter_car

DAMPED = TwoMasses(0.01)
MICRO = 2.5e-4  # s; its errors are far below those of the coupling


def position_error(master: str, order: int, step: float, duration: float = 1.0) -> float:
    """Of both masses at the end [m]."""
    run = CoupledParts(DAMPED.parts(MICRO), [BOND], master, order, step).run(duration)
    exact = DAMPED.exact(run.t[-1:])[0]
    return abs(run["left.position"][-1] - exact[0]) + abs(run["right.position"][-1] - exact[1])


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_error_falls_with_the_order_of_the_polynomials_plus_one(master, order):
    coarse, fine = (position_error(master, order, step) for step in (1e-3, 5e-4))
    assert np.log2(coarse / fine) == pytest.approx(order + 1, abs=0.1)


def test_small_steps_give_the_motion_of_the_whole():
    # the exact motion is up to 33 m and 4 m wide
    assert position_error("gauss_seidel", 2, 2.5e-4) < 2e-6


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize(("order", "correction"), [(0, EnergyCorrection()), (1, None), (2, EnergyCorrection())])
def test_python_and_machine_code_give_the_same_numbers(master, order, correction):
    coupled = (
        CoupledParts(DAMPED.parts(1e-3), [BOND], master, order, 2e-3, correction=correction, compiled=compiled)
        for compiled in (True, False)
    )
    runs = [each.run(0.05) for each in coupled]
    for name, values in runs[0].signals.items():
        assert runs[1][name] == pytest.approx(values, rel=1e-11, abs=1e-9)
    assert runs[1].residuals["left-right"] == pytest.approx(runs[0].residuals["left-right"], abs=1e-7)


@pytest.mark.parametrize("repeats", [False, True])
def test_python_and_machine_code_choose_the_same_steps(repeats):
    parts, bond = quarter_car(1e-3)
    control = EnergyControl(1e-4, 1e-2, 1e-2, 1e-2, repeats=repeats)
    runs = [
        CoupledParts(parts, [bond], step=1e-3, control=control, compiled=compiled).run(0.3)
        for compiled in (True, False)
    ]
    assert runs[1].t == pytest.approx(runs[0].t, rel=1e-9)
    assert runs[1].repeated == runs[0].repeated
    assert (runs[0].repeated > 0) == repeats


def test_the_interpreter_gives_the_same_numbers(monkeypatch):
    compiled = CoupledParts(DAMPED.parts(1e-3), [BOND], step=2e-3).run(0.02)
    monkeypatch.setenv("COSIM_INTERPRET", "1")
    interpreted = CoupledParts(DAMPED.parts(1e-3), [BOND], step=2e-3).run(0.02)
    assert interpreted["right.position"] == pytest.approx(compiled["right.position"], rel=1e-11)


@pytest.mark.parametrize("compiled", [True, False])
def test_every_run_begins_anew(compiled):
    coupled = CoupledParts(DAMPED.parts(1e-3), [BOND], step=2e-3, compiled=compiled)
    first, second = coupled.run(0.02), coupled.run(0.02)
    assert second["right.position"].tolist() == first["right.position"].tolist()
    assert second.residuals["left-right"].tolist() == first.residuals["left-right"].tolist()


@settings(max_examples=3)
@given(
    stiffness=st.tuples(*[st.floats(1.0, 400.0)] * 3),
    velocities=st.tuples(*[st.floats(-10.0, 10.0)] * 2),
    damping=st.floats(0.0, 2.0),
)
def test_both_masters_converge_to_the_same_motion(stiffness, velocities, damping):
    masses = TwoMasses(damping, stiffness, velocities)
    exact = masses.exact(np.array([0.2]))[0, :2]
    for master in MASTERS:
        run = CoupledParts(masses.parts(1e-3), [BOND], master, 2, 1e-3, compiled=False).run(0.2)
        found = np.array([run["left.position"][-1], run["right.position"][-1]])
        assert found == pytest.approx(exact, abs=2e-5 * (1.0 + np.abs(velocities).max()))


def test_the_sequence_of_gauss_seidel_is_by_feedthrough_unless_it_is_given():
    parts, bond = quarter_car(1e-3)
    assert CoupledParts(parts, [bond]).scheme.sequence == ("wheel", "chassis")
    assert CoupledParts(parts, [bond], sequence=["chassis", "wheel"]).scheme.sequence == ("chassis", "wheel")


def test_parts_have_steps_of_their_own():
    """A fast lag with 20 steps, a slow one with 1 in each step of the coupling, against scipy on the whole."""
    parts = {"fast": BlockPart(Lag("N", "N", 1e-3, 1.0), 1e-5), "slow": BlockPart(Lag("N", "N", 0.5, 2.0), 1e-3)}
    wires = [Wire("fast.y", "slow.u"), Wire("slow.y", "fast.u")]
    run = CoupledParts(parts, wires, order=2, step=2e-4).run(0.05)

    def flow(t: float, x: np.ndarray) -> list[float]:
        return [(x[1] - x[0]) / 1e-3, (x[0] - x[1]) / 0.5]

    whole = solve_ivp(flow, (0.0, 0.05), [1.0, 2.0], "Radau", rtol=1e-10, atol=1e-12)
    assert [run["fast.y"][-1], run["slow.y"][-1]] == pytest.approx(whole.y[:, -1], abs=1e-6)


def test_a_sampled_part_holds_its_outputs_between_its_samples():
    parts = {"lag": BlockPart(Lag("N", "N", 0.1, 1.0), 1e-3), "sampled": BlockPart(SampledGain("N", "N", -2.0), 0.01)}
    wires = [Wire("lag.y", "sampled.u"), Wire("sampled.y", "lag.u")]
    run = CoupledParts(parts, wires, "jacobi", 0, 0.01).run(0.05)
    assert run["sampled.n"] == pytest.approx([1.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    # the output at the end of a step is that of the sample at its beginning
    assert run["sampled.y"][1:] == pytest.approx(-2.0 * run["lag.y"][:-1])
    decay = np.exp(-0.1)
    expected = [1.0]
    for held in run["sampled.y"][:-1]:
        expected.append(held + (expected[-1] - held) * decay)
    assert run["lag.y"] == pytest.approx(expected, rel=1e-9)


def test_a_sampled_part_has_several_samples_in_a_step():
    parts = {"lag": BlockPart(Lag("N", "N", 0.1, 1.0), 1e-3), "sampled": BlockPart(SampledGain("N", "N"), 0.002)}
    run = CoupledParts(parts, [Wire("lag.y", "sampled.u"), Wire("sampled.y", "lag.u")], step=0.01).run(0.02)
    assert run["sampled.n"] == pytest.approx([1.0, 5.0, 10.0])


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_delayed_wire_carries_the_value_of_the_last_communication_point(master, order):
    parts = {"a": BlockPart(Gain("N", "N"), 1e-3), "b": BlockPart(Lag("N", "N", 0.05, 1.0), 1e-3)}
    wires = [Wire("a.y", "b.u"), Wire("b.y", "a.u", initial=0.5)]
    runs = [CoupledParts(parts, wires, master, order, 0.01, compiled=compiled).run(0.1) for compiled in (True, False)]
    for run in runs:
        assert run["a.y"][0] == 0.5
        assert run["a.y"][1:] == pytest.approx(run["b.y"][:-1])
    assert runs[1]["b.y"] == pytest.approx(runs[0]["b.y"], rel=1e-12)
