"""A pendulum: of its link only the first moment and the inertia about the pivot are determined."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from cosim import load_rig
from cosim.apps.identification.identification import identify
from tests.identification import pendulum


@pytest.fixture(scope="module")
def rig_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("pendulum") / "pend.yaml"
    path.write_text(pendulum.RIG)
    return path


@pytest.fixture(scope="module")
def table(rig_file):
    return pendulum.write(rig_file.parent / "good.csv", pendulum.motion())


@pytest.fixture(scope="module")
def found(rig_file, table):
    return identify(load_rig(rig_file), table)


def numbers(found):
    return {number.name: number for number in found.numbers}


def test_a_friction_that_the_rig_has_not_is_0_in_it(found):
    known = numbers(found)
    assert known["mechanism.pivot.damping"].before == 0.0
    assert known["mechanism.pivot.friction"].before == 0.0
    assert known["mechanism.pivot.damping"].value == pytest.approx(0.15, rel=0.02)
    assert known["mechanism.pivot.friction"].value == pytest.approx(0.1, abs=0.015)


def test_what_the_numbers_of_the_rig_leave_is_that_of_the_rig_without_friction(rig_file, table, found):
    rig = load_rig(rig_file, ["mechanism.numbers.pivot={damping: 1e-12, friction: 1e-12}"])
    assert found.checks[0].before == pytest.approx(identify(rig, table).checks[0].before, rel=1e-6)


def test_only_sums_are_determined(found):
    """The numbers of the link are split in some way, which nothing in the motion tells."""
    known = numbers(found)
    assert {n.state for name, n in known.items() if name.startswith("mechanism.bob.")} == {"in combination"}
    assert [quantity.title for quantity in found.unsure] == [
        "the mass of bob", "the centre of mass of bob", "the inertia of bob",
    ]  # fmt: skip
    mass, z = known["mechanism.bob.mass"].value, known["mechanism.bob.com.z"].value
    assert -mass * z == pytest.approx(1.4 * 0.35, rel=0.01)
    assert known["mechanism.bob.inertia.iyy"].value + mass * z**2 == pytest.approx(0.02 + 1.4 * 0.35**2, rel=0.01)


def test_a_single_number_of_a_link_is_found_with_the_others_held(rig_file, tmp_path):
    """The mass of a pendulum that has the centre of mass and inertia of the rig."""
    true = load_rig(rig_file, ["mechanism.numbers.bob={com: [0, 0, -0.35], inertia: [0.02, 0.02, 0.001]}"])
    table = pendulum.write(tmp_path / "f.csv", pendulum.motion())
    found = identify(true, table, ["mechanism.bob.mass", "friction"])
    assert found.numbers[0].name == "mechanism.bob.mass"
    assert len(found.numbers) == 3
    mass = numbers(found)["mechanism.bob.mass"]
    assert (mass.state, mass.before) == ("found", 1.0)
    assert mass.value == pytest.approx(1.4, rel=0.005)
    assert found.overlay()["mechanism.numbers.bob.mass"] == mass.value
    assert "mechanism.numbers.bob.com" not in found.overlay()


@pytest.mark.parametrize("method", ["equation-error", "output-error"])
def test_centre_of_mass_and_inertia_alone(rig_file, tmp_path, method):
    """Of a rig of the true mass; a recording of a simulated run, for both methods."""
    sine = "{type: sine, amplitude: 0.8, frequency: 0.7, ramp: 1}"
    base = [f"controllers.c.trajectory={sine}", "mechanism.numbers.bob.mass=1.4"]
    link = "{mass: 1.4, com: [0, 0, -0.35], inertia: [.01, .02, .001]}"
    true = load_rig(rig_file, [*base, f"mechanism.numbers.bob={link}"])
    true.run(record=tmp_path / "f.mcap")
    rig = load_rig(rig_file, base)
    found = identify(rig, tmp_path / "f.mcap", ["mechanism.bob.com", "mechanism.bob.inertia"], method=method)
    known = numbers(found)
    assert len(known) == 9
    z = known["mechanism.bob.com.z"].value
    assert z == pytest.approx(-0.35, rel=0.01)
    assert known["mechanism.bob.inertia.iyy"].value + 1.4 * z**2 == pytest.approx(0.02 + 1.4 * 0.35**2, rel=0.02)
    keys = found.overlay()
    again = load_rig(rig_file, [*base, *(f"{key}={yaml.safe_dump(value)}" for key, value in keys.items())])
    np.testing.assert_allclose(again.numbers["mechanism.bob.com"], keys["mechanism.numbers.bob.com"])
    np.testing.assert_allclose(again.numbers["mechanism.bob.inertia"], keys["mechanism.numbers.bob.inertia"])
    assert again.numbers["mechanism.bob.mass"] == pytest.approx(1.4)


def test_all_numbers_of_a_link_are_the_link(rig_file, table, found):
    same = identify(load_rig(rig_file), table, ["mechanism.bob.*", "friction"])
    np.testing.assert_array_equal(same.values, found.values)
