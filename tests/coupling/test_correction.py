"""The energy-conserving correction keeps the energy of the lossless two masses, at steps at which they diverge else."""

import numpy as np
import pytest

from cosim.coupling import CoupledParts, EnergyCorrection
from tests.coupling.test_energy import LOSSLESS, WithoutWork, energy_error
from tests.kit.coupled import BOND

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
