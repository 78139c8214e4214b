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


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("master", MASTERS)
def test_the_quarter_car_has_a_fifth_of_the_error_of_constant_steps(master, repeats):
    parts, bond = quarter_car(1e-4)
    control = EnergyControl(1e-5, 5e-2, relative=1e-2, absolute=1e-2, repeats=repeats)
    chosen = CoupledParts(parts, [bond], master, 1, 1e-4, control).run(DURATION)
    steps = len(chosen.t) - 1 + chosen.repeated
    constant = CoupledParts(parts, [bond], master, 1, DURATION / steps).run(DURATION)
    assert len(constant.t) - 1 == steps < 600
    assert chosen.t[-1] == pytest.approx(DURATION)
    assert (errors(chosen) < 0.2 * errors(constant)).all()


def test_a_repeated_step_keeps_the_tolerance():
    parts, bond = quarter_car(1e-4)
    created = {}
    for repeats in (False, True):
        control = EnergyControl(1e-6, 5e-2, relative=1e-9, absolute=1e-2, repeats=repeats)
        run = CoupledParts(parts, [bond], "jacobi", 1, 1e-3, control).run(0.2)
        created[repeats] = np.abs(np.diff(run.residuals["chassis-wheel"])).max()
        assert (run.repeated > 0) == repeats
    assert created[True] <= 1.001e-2 < created[False]


def test_a_part_without_variable_steps_is_named():
    parts, bond = quarter_car(1e-4)
    fixed = {name: WithoutWork(part) for name, part in parts.items()}
    fixed["wheel"].variable = False
    text = "part 'wheel': its steps cannot have any length; use an energy correction instead of a step control"
    with pytest.raises(InputError, match=f"^{text}$"):
        CoupledParts(fixed, [bond], control=EnergyControl(1e-4, 1e-2))


def test_a_part_that_cannot_repeat_is_named():
    parts, bond = quarter_car(1e-4)
    fixed = {name: WithoutWork(part) for name, part in parts.items()}
    fixed["wheel"].repeats = False
    text = "part 'wheel': it cannot repeat a step; use a step control without `repeats`"
    with pytest.raises(InputError, match=f"^{text}$"):
        CoupledParts(fixed, [bond], control=EnergyControl(1e-4, 1e-2, repeats=True))
    assert CoupledParts(fixed, [bond], control=EnergyControl(1e-4, 1e-2)).run(0.05).repeated == 0
