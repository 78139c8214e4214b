"""Jacobi and Gauss–Seidel against exact motions and each other, in Python and machine code; extrapolation,
correction of the energy, control of the step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from cosim.core.errors import InputError, RunError
from cosim.simulation.coupling import (
    BlockPart,
    CoupledParts,
    CoupledRun,
    EnergyControl,
    EnergyCorrection,
    Wire,
    stepped_block,
)
from cosim.simulation.coupling.coupled_parts import MASTERS
from cosim.simulation.coupling.extrapolation import line_before, polynomial, times_before, value_at
from cosim.simulation.coupling.stepped_block import SteppedBlock
from tests.coupling.test_energy import LOSSLESS, WithoutWork, energy_error
from tests.kit.coupled import BOND, Gain, Lag, SampledGain, TwoMasses, quarter_car, quarter_car_exact
from tests.kit.refusals import raised

DAMPED = TwoMasses(0.01)
MICRO = 2.5e-4  # s; its errors are far below the coupling's


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


def every_way(parts, *settings, **named):
    """As one piece of machine code, with calls of the parts, and with parts that hold their state."""
    held = {name: SteppedBlock(part) for name, part in parts.items()}
    return [
        CoupledParts(parts, *settings, **named),
        CoupledParts(parts, *settings, **named, compiled=False),
        CoupledParts(held, *settings, **named),
    ]


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize(("order", "correction"), [(0, EnergyCorrection()), (1, None), (2, EnergyCorrection())])
def test_every_way_to_run_them_gives_the_same_numbers(master, order, correction):
    whole, *others = [
        each.run(0.05) for each in every_way(DAMPED.parts(1e-3), [BOND], master, order, 2e-3, correction=correction)
    ]
    for run in others:
        for name, values in whole.signals.items():
            assert run[name] == pytest.approx(values, rel=1e-11, abs=1e-9)
        assert run.residuals["left-right"] == pytest.approx(whole.residuals["left-right"], abs=1e-7)


@pytest.mark.parametrize("repeats", [False, True])
def test_every_way_to_run_them_chooses_the_same_steps(repeats):
    parts, bond = quarter_car(1e-3)
    control = EnergyControl(1e-4, 1e-2, 1e-2, 1e-2, repeats=repeats)
    whole, *others = [each.run(0.3) for each in every_way(parts, [bond], step=1e-3, control=control)]
    assert (whole.repeated > 0) == repeats
    for run in others:
        assert run.t == pytest.approx(whole.t, rel=1e-9)
        assert run.repeated == whole.repeated


def test_a_part_that_holds_its_state_returns_to_the_one_that_was_kept_and_no_other():
    masses = {name: SteppedBlock(part) for name, part in DAMPED.parts(1e-3).items()}
    master = CoupledParts(masses, [BOND], order=0).calling_master()
    memory = master.started(0.0, 1e-3)
    master.keep(memory)
    after = [master.step(memory, 1e-3).tolist() for _ in range(3)]
    values = [master.layout.unpack(np.array(each))["values"].tolist() for each in after]
    assert values[0] == values[1] == values[2]
    left = master.step(master.step(memory, 1e-3), 1e-3)
    master.keep(left)
    master.step(left, 1e-3)
    with pytest.raises(RunError, match="only the state that was kept"):
        master.step(memory, 1e-3)


def test_all_is_compiled_before_the_first_step(monkeypatch):
    """Motors may move then."""
    parts, bond = quarter_car(1e-3)
    control = EnergyControl(1e-4, 1e-2)
    master = CoupledParts(parts, [bond], order=0, control=control, compiled=False).calling_master()
    monkeypatch.setattr(stepped_block, "compile", None)
    memory = master.controlled_step(master.started(0.0, 1e-3), 1.0)
    assert master.layout.unpack(memory)["made"] == 1.0


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
    # the output at the end of a step comes from the sample at its beginning
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


# --- extrapolation ---

LENGTHS = st.floats(0.05, 3.0)


@pytest.mark.parametrize("order", [0, 1, 2])
@given(lengths=st.tuples(LENGTHS, LENGTHS), values=st.tuples(*[st.floats(-10.0, 10.0)] * 3))
def test_a_polynomial_has_its_values_at_its_times(order, lengths, values):
    times = times_before(lengths)[: order + 1]
    coefficients = polynomial(values[: order + 1], times)
    assert len(coefficients) == order + 1
    for time, value in zip(times, values, strict=False):
        assert value_at(coefficients, time) == pytest.approx(value, abs=1e-9)


def test_the_coefficients_are_those_of_numpy():
    times, values = [0.5, 0.0, -0.2], np.array([[1.0, 2.0], [-1.0, 0.5], [3.0, 0.0]])
    expected = [np.polyfit(times, column, 2)[::-1] for column in values.T]
    assert pytest.approx(np.array(expected)) == np.array(polynomial(list(values), times)).T


def test_a_quadratic_is_extrapolated_exactly():
    def exact(t: float) -> float:
        return 2.0 - 3.0 * t + 0.7 * t * t

    times = times_before([0.3, 0.1])
    assert times == pytest.approx([0.0, -0.3, -0.4])
    assert value_at(polynomial([exact(t) for t in times], times), 0.25) == pytest.approx(exact(0.25))


def test_a_past_on_a_line_makes_every_order_this_line():
    values = [1.0, *line_before(1.0, 1.5, 2)]
    for order in (1, 2):
        coefficients = polynomial(values[: order + 1], times_before([0.1, 0.1])[: order + 1])
        assert value_at(coefficients, 0.1) == pytest.approx(1.5)
        assert value_at(coefficients, 0.05) == pytest.approx(1.25)


# --- correction ---

START = 1e4  # J, the energy of both masses


def runs(master: str, order: int, step: float) -> list[float]:
    """Largest error of the energy [J] over 4 s, without and with the correction."""
    found = []
    for correction in (None, EnergyCorrection()):
        coupled = CoupledParts(LOSSLESS.parts(1e-3), [BOND], master, order, step, correction=correction)
        found.append(np.abs(energy_error(coupled.run(4.0))).max())
    return found


def test_the_offsets_remove_the_debt_and_are_the_smallest_that_do():
    correction = EnergyCorrection(limit=1e9)
    effort, flow, h, debt = np.array([3.0, -1.0]), np.array([0.2, 0.5]), 1e-2, 0.07
    largest = 25.0, 0.5
    de, df = correction.offsets(debt, h, effort, flow, largest)
    assert h * (de @ flow - effort @ df) == pytest.approx(-debt)
    # the least-norm solution of one linear equation, in scaled unknowns
    row = np.concatenate([flow * np.sqrt(largest[0]), -effort * np.sqrt(largest[1])])
    least = np.linalg.pinv(row[None]) @ [-debt / h]
    assert np.concatenate([de / np.sqrt(largest[0]), df / np.sqrt(largest[1])]) == pytest.approx(least)


def test_the_offsets_are_limited_and_zero_at_rest():
    largest = 4.0, 9.0
    de, df = EnergyCorrection(limit=0.1).offsets(1e3, 1e-3, np.array([0.1]), np.array([0.1]), largest)
    assert [de[0], df[0]] == pytest.approx([-0.2, 0.3])
    rest = EnergyCorrection().offsets(0.0, 1e-3, np.zeros(1), np.zeros(1), (0.0, 0.0))
    assert np.array(rest).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize(("master", "order"), [("jacobi", 0), ("jacobi", 2), ("gauss_seidel", 1)])
def test_the_energy_error_falls_by_an_order_of_magnitude(master, order):
    plain, corrected = runs(master, order, 1e-3)
    assert corrected < 0.1 * plain
    assert corrected < 3e-4 * START


def test_steps_at_which_the_plain_coupling_diverges_keep_their_energy():
    plain, corrected = runs("jacobi", 0, 1e-2)
    assert plain > 30.0 * START
    assert corrected < 0.03 * START


def test_parts_that_do_not_measure_their_work_are_corrected_too():
    errors = []
    for correction in (None, EnergyCorrection()):
        parts = {name: WithoutWork(part) for name, part in LOSSLESS.parts(1e-3).items()}
        run = CoupledParts(parts, [BOND], "jacobi", 0, 1e-3, correction=correction).run(1.5)
        errors.append(np.abs(energy_error(run)).max())
    assert errors[1] < 0.2 * errors[0]


# --- control of the step ---

DURATION = 4.0
GRID = np.linspace(0.0, DURATION, 401)


def test_the_error_is_the_root_mean_square_of_the_residuals_relative_to_their_tolerances():
    control = EnergyControl(1e-4, 1.0, relative=0.1, absolute=0.5)
    works = np.array([[1.0, 1.5], [-4.0, -5.0]])
    scaled = [0.5 / (0.5 + 0.15), -1.0 / (0.5 + 0.5)]
    assert control.error(works) == pytest.approx(np.sqrt(np.mean(np.square(scaled))))


def test_the_next_length_is_that_of_a_pi_controller_within_its_bounds():
    control = EnergyControl(1e-4, 1e-2)
    assert control.next_length(1e-3, 0.5, 0.7) == pytest.approx(1e-3 * 0.8 * 0.5**-0.35 * 0.7**0.2)
    assert control.next_length(1e-3, 1e9, 1.0) == pytest.approx(0.2e-3)
    assert control.next_length(1e-3, 1e-9, 1.0) == pytest.approx(1.5e-3)
    assert control.next_length(1e-2, 1e-9, 1.0) == pytest.approx(1e-2)
    assert control.next_length(1e-4, 1e9, 1.0) == pytest.approx(1e-4)
    assert np.isfinite(control.next_length(1e-3, 0.0, 0.0))


def errors(run: CoupledRun) -> np.ndarray:
    """Mean absolute error of the positions of chassis and wheel over the time [m]."""
    exact = quarter_car_exact(run.t).T
    found = run["chassis.position"], run["wheel.position"]
    return np.array([np.interp(GRID, run.t, np.abs(a - b)).mean() for a, b in zip(found, exact, strict=True)])


@pytest.mark.parametrize(("master", "repeats"), [*zip(MASTERS, (False, True), strict=True)])
def test_the_quarter_car_has_a_fifth_of_the_error_of_constant_steps(master, repeats):
    parts, bond = quarter_car(1e-4)
    control = EnergyControl(1e-5, 5e-2, relative=1e-2, absolute=1e-2, repeats=repeats)
    chosen = CoupledParts(parts, [bond], master, 1, 1e-4, control).run(DURATION)
    steps = len(chosen.t) - 1 + chosen.repeated
    constant = CoupledParts(parts, [bond], master, 1, DURATION / steps).run(DURATION)
    assert len(constant.t) - 1 == steps < 600
    assert chosen.t[-1] == pytest.approx(DURATION)
    assert (errors(chosen) < 0.2 * errors(constant)).all()


@pytest.mark.parametrize("master", MASTERS)
def test_without_extrapolation_the_energy_of_the_quarter_car_is_an_order_of_magnitude_better(master):
    """And the wheel's; in the slow end of the motion of the chassis little power flows, so its steps are long."""
    parts, bond = quarter_car(1e-4)
    control = EnergyControl(1e-5, 1e-2, relative=1e-2, absolute=1e-2)
    chosen = CoupledParts(parts, [bond], master, 0, 1e-4, control).run(DURATION)
    constant = CoupledParts(parts, [bond], master, 0, DURATION / (len(chosen.t) - 1)).run(DURATION)
    created = [np.abs(run.residuals["chassis-wheel"]).max() for run in (chosen, constant)]
    assert created[0] < 0.1 * created[1]
    assert errors(chosen)[1] < 0.35 * errors(constant)[1]


def test_a_repeated_step_keeps_the_tolerance():
    parts, bond = quarter_car(1e-4)
    created = {}
    for repeats in (False, True):
        control = EnergyControl(1e-6, 5e-2, relative=1e-9, absolute=1e-2, repeats=repeats)
        run = CoupledParts(parts, [bond], "jacobi", 1, 1e-3, control).run(0.2)
        created[repeats] = np.abs(np.diff(run.residuals["chassis-wheel"])).max()
        assert (run.repeated > 0) == repeats
    assert created[True] <= 1.001e-2 < created[False]


@pytest.mark.parametrize(("able", "repeats"), [("variable", False), ("repeats", True)])
def test_a_part_that_cannot_do_it_is_named(able, repeats, said):
    parts, bond = quarter_car(1e-4)
    fixed = {name: WithoutWork(part) for name, part in parts.items()}
    setattr(fixed["wheel"], able, False)
    said(raised(InputError, CoupledParts, fixed, [bond], control=EnergyControl(1e-4, 1e-2, repeats=repeats)))
    if repeats:  # without them, it can be controlled
        assert CoupledParts(fixed, [bond], control=EnergyControl(1e-4, 1e-2)).run(0.05).repeated == 0
