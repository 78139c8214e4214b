"""ECCO: the law itself, and the quarter car against steps of constant length at equal cost."""

import numpy as np
import pytest

from cosim.coupling import CoupledParts, CoupledRun, EnergyControl
from cosim.coupling.coupled_parts import MASTERS
from cosim.errors import InputError
from tests.coupling.test_energy import WithoutWork
from tests.kit.coupled import quarter_car, quarter_car_exact

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
    with pytest.raises(InputError) as error:
        CoupledParts(fixed, [bond], control=EnergyControl(1e-4, 1e-2, repeats=repeats))
    said(error.value)
    if repeats:  # without them, it can be controlled
        assert CoupledParts(fixed, [bond], control=EnergyControl(1e-4, 1e-2)).run(0.05).repeated == 0
