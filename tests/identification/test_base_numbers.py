"""The combinations that a motion determines, beside the ones that mechanics gives; their place in texts and figures."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.identification.base_numbers import combinations
from cosim.apps.identification.identification import identify
from cosim.rig.reading.yaml_source import read_overlay

# of the other arm of `conftest.TRUTH`, whose joints are parallel: by hand, from its kinetic and potential energy
UPPER, FORE = (2.0, 0.2, 0.01), (1.6, 0.2, 0.03)  # kg, m
ROTORS = {"shoulder": 4e-5 * 80**2, "elbow": 4e-5 * 50**2}  # kg m², known to the rig
TRUE = {
    "Jyy(upper) + 0.16 m(fore)": 0.03 + UPPER[0] * UPPER[1] ** 2 + 0.16 * FORE[0],
    "mx(upper) + 0.4 m(fore)": UPPER[0] * UPPER[1] + 0.4 * FORE[0],
    "mz(upper)": 0.0,
    "Jyy(fore)": 0.03 + FORE[0] * (FORE[1] ** 2 + FORE[2] ** 2),
    "mx(fore)": FORE[0] * FORE[1],
    "mz(fore)": FORE[0] * FORE[2],
}


@pytest.fixture(scope="module")
def found(arm_file, recording):
    return identify(load_rig(arm_file), recording)


def test_the_base_numbers_of_a_planar_arm(found):
    base = {number.name: number for number in found.base if number.of_links}
    assert set(base) == set(TRUE)
    for name, true in TRUE.items():
        assert base[name].value == pytest.approx(true, rel=0.03, abs=0.01), base[name]
        assert found.unit_of_base(base[name]) == ("kg*m^2" if name.startswith("J") else "kg*m")
    others = {number.name: number.value for number in found.base if not number.of_links}
    known = {number.name: number.value for number in found.numbers}
    assert others == pytest.approx({name: known[name] for name in others})
    assert len(others) == 4  # frictions


def test_the_values_follow_from_the_numbers(found):
    """Whichever way they are split."""
    known = {number.name: number.value for number in found.numbers}
    mass, x = known["mechanism.fore.mass"], known["mechanism.fore.com.x"]
    base = {number.name: number.value for number in found.base}
    assert base["mx(fore)"] == pytest.approx(mass * x, rel=1e-9)
    upper = known["mechanism.upper.mass"] * known["mechanism.upper.com.x"]
    assert base["mx(upper) + 0.4 m(fore)"] == pytest.approx(upper + 0.4 * mass, rel=1e-6)


def test_texts_and_figures_have_them(found):
    text = "\n".join(found.lines())
    assert "are found only in combination; the motion determines" in text
    for number in found.base:
        assert (number.name in text.partition("the motion determines")[2]) == (number.of_links and number.clear)
    figures = found.as_json()["base"]
    assert {name: of["value"] for name, of in figures.items()} == {of.name: of.value for of in found.base}
    assert all(of["interval"] > 0.0 and of["recordings"] == [] for of in figures.values())


def test_each_recording_alone(arm_file, truth, recording, tmp_path):
    """Of a machine whose friction has changed between them: no body has."""
    sine = {"type": "sine", "amplitude": [0.9, 0.6], "frequency": [0.35, 0.83], "ramp": 1}
    changes = [f"controllers.track.trajectory={sine}", "joints.elbow.actuator.coulomb=2.6"]
    load_rig(arm_file, [*read_overlay(truth), *changes]).run(record=tmp_path / "warm.mcap")
    found = identify(load_rig(arm_file), [recording, tmp_path / "warm.mcap"])
    base = {number.name: number for number in found.base}
    assert base["joints.elbow.actuator.coulomb"].alone == pytest.approx((1.3, 2.6), rel=0.02)
    assert base["mx(fore)"].alone == pytest.approx((0.32, 0.32), rel=0.02)
    assert base["mx(upper) + 0.4 m(fore)"].alone == pytest.approx((1.04, 1.04), rel=0.02)


def test_single_numbers_of_links_have_no_base(arm_file, recording):
    found = identify(load_rig(arm_file), recording, ["torque_constant", "mechanism.fore.mass"])
    assert found.base == ()


@pytest.mark.parametrize("seed", range(5))
def test_combinations_say_all_that_the_columns_do(seed):
    """W β = W_free (factors β) for any β, with as many as the rank is, in any order and in any units."""
    rng = np.random.default_rng(seed)
    rank, size = int(rng.integers(2, 7)), 9
    W = rng.normal(size=(40, rank)) @ rng.normal(size=(rank, size)) * 10.0 ** rng.uniform(-3, 3, size)
    W[:, 4] = 0.0
    order = rng.permutation(size)
    free, factors = combinations(W, np.linalg.norm(W, axis=0), order.tolist())
    assert len(free) == rank and 4 not in free
    beta = rng.normal(size=size) / np.maximum(np.linalg.norm(W, axis=0), 1.0)
    np.testing.assert_allclose(W[:, free] @ (factors @ beta), W @ beta, atol=1e-4 * np.abs(W @ beta).max())
    ranks = [
        np.linalg.matrix_rank(W[:, order[: k + 1]] / np.abs(W).max(axis=0).clip(1e-9)[order[: k + 1]])
        for k in range(size)
    ]
    first = [int(order[k]) for k in range(size) if ranks[k] > (ranks[k - 1] if k else 0)]
    assert free == first  # what comes first in the order, stands for the others
