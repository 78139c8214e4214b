"""The numbers that a session varies: names, ranges, scales, and what is wrong with them."""

import numpy as np
import pytest

from cosim import InputErrors, Rig, load_rig
from cosim.apps.tuning.plants import read_plants
from cosim.apps.tuning.space import Dimension, read_space
from tests.kit.refusals import raised
from tests.tuning.textbook import TURNTABLE, turntable

ARM = {
    "name": "arm",
    "mechanism": {
        "bodies": [
            {
                "name": "b0",
                "joint": "shoulder",
                "axis": [0, 1, 0],
                "mass": 2.0,
                "com": [0.2, 0, 0],
                "inertia": [1, 1, 1],
            },
            {
                **{"name": "b1", "parent": "b0", "joint": "elbow", "axis": [0, 1, 0], "mass": 1.0},
                **{"com": [0.1, 0, 0], "inertia": [0.1, 0.1, 0.1], "origin": {"xyz": [0.4, 0, 0]}},
            },
        ]
    },
    "joints": {"elbow": {"friction": {"model": "smooth", "coulomb": 0.5, "viscous": 0.1}}},
    "controllers": [{"name": "arm", "type": "pd_gravity", "kp": [200, 100], "kd": [20, 10]}],
    "schedule": {"duration": 0.1},
}


@pytest.fixture(scope="module")
def arm():
    return Rig.from_dict(ARM)


def test_a_parameter_with_a_number_per_joint_is_varied_joint_by_joint(arm):
    space = read_space(arm, {"arm.kp": "x0.5..x4", "arm.kd/elbow": "..30"})
    assert [tuple(d) for d in space.dimensions] == [
        ("arm.kp/shoulder", "arm.kp", 0, 100.0, 800.0, 200.0, "N*m/rad"),
        ("arm.kp/elbow", "arm.kp", 1, 50.0, 400.0, 100.0, "N*m/rad"),
        ("arm.kd/elbow", "arm.kd", 1, 0.0, 30.0, 10.0, "N*m*s/rad"),
    ]
    arrays = space.arrays(np.array([[300.0, 60.0, 5.0]]))
    assert {name: array.tolist() for name, array in arrays.items()} == {"arm.kp": [[300, 60]], "arm.kd": [[20, 5]]}
    assert space.parameters(np.array([1.0, 2.0, 3.0])) == {"arm.kp": [1.0, 2.0], "arm.kd": [20.0, 3.0]}


def test_the_later_of_two_ranges_of_one_number_counts(arm):
    space = read_space(arm, {"arm.kp": "1..1000", "arm.kp/elbow": "10 N*m/rad..20 N*m/rad"})
    assert [(d.name, d.low, d.high) for d in space.dimensions] == [
        ("arm.kp/shoulder", 1.0, 1000.0),
        ("arm.kp/elbow", 10.0, 20.0),
    ]


def test_numbers_of_the_plant_have_their_units_and_the_bounds_of_a_rig_file(arm):
    space = read_space(arm, {"mechanism.b0.mass": "500 g..3 kg", "mechanism.b1.com/2": "-1 cm..1 cm"})
    assert [tuple(d) for d in space.dimensions] == [
        ("mechanism.b0.mass", "mechanism.b0.mass", 0, 0.5, 3.0, 2.0, "kg"),
        ("mechanism.b1.com/2", "mechanism.b1.com", 2, -0.01, 0.01, 0.0, "m"),
    ]
    (above_0,) = read_space(arm, {"joints.elbow.friction.coulomb": "..2"}).dimensions
    assert (above_0.low, above_0.logarithmic) == (1e-15, False)


@pytest.mark.parametrize(
    ("low", "high", "logarithmic"), [(1, 10, True), (1, 9.9, False), (0, 100, False), (-5, 5, False)]
)
def test_a_range_over_a_decade_is_logarithmic(low, high, logarithmic):
    dimension = Dimension("a", "a", 0, low, high, 1.0, "1")
    assert dimension.logarithmic is logarithmic
    middle = np.sqrt(low * high) if logarithmic else 0.5 * (low + high)
    assert dimension.value(0.5) == pytest.approx(middle)
    for value in np.linspace(low, high, 7):
        assert dimension.value(dimension.position(value)) == pytest.approx(value, abs=1e-12)
    assert (dimension.value(0.0), dimension.value(1.0)) == (low, high)
    assert (dimension.position(low - 1), dimension.position(high + 1)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("range_", "inside"), [("100..200", True), ("50..100", True), ("101..200", False), ("50..99", False)]
)
def test_the_gains_of_the_rig_count_within_their_bounds_and_on_them(arm, range_, inside):
    assert read_space(arm, {"arm.kp/elbow": range_}).start_inside is inside


def test_without_names_all_parameters_with_declared_bounds_are_varied(rig_of):
    rig = rig_of(
        """
        mechanism: {bodies: [{name: b, joint: j, mass: 1, inertia: [1, 1, 1]}]}
        controllers: [{name: c, type: push.py}]
        """
    )
    file = rig.spec.path.parent / "push.py"
    file.write_text(file.read_text().replace("param(default=1.0)", "param(min=-2, max=3, default=1.0)"))
    (dimension,) = read_space(load_rig(rig.spec.path), {}).dimensions
    assert dimension[:6] == ("c.size", "c.size", 0, -2, 3, 1.0)


@pytest.mark.parametrize(
    "requests",
    [
        {},
        {"arm.kp": None},
        {"joints.elbow.friction.coulomb": None},
        {"arm.kq": "1..2"},
        {"arm.kp/wrist": "1..2"},
        {"arm.kp": "9..2"},
        {"joints.elbow.actuator.max_effort": "1..2"},
        {"arm.kp": "2..2"},
        {"arm.kp": "-1..2"},
        {"arm.kp": "5"},
        {"arm.kp": "x..5"},
        {"arm.kp": "a..5"},
        {"mechanism.b0.mass": "0..2"},
        {"mechanism.b0.mass": "1 m..2"},
        {"mechanism.b0.mass/0": "1..2"},
    ],
    ids=str,
)
def test_ranges_that_do_not_fit(arm, requests, said):
    said(raised(Exception, read_space, arm, requests))


def test_all_mistakes_are_reported_together(arm):
    with pytest.raises(InputErrors) as refused:
        read_space(arm, {"arm.kp": "9..2", "arm.x": "1..2"})
    assert len(refused.value.errors) == 2


# --- plants -----------------------------------------------------------------------------------------


def test_plants_are_the_corners_of_the_groups(arm):
    plants = read_plants(arm, {"inertia": "20 %", "friction": 0.5}, None, 0, set())
    assert plants.factors.tolist() == [[1, 1], [0.8, 0.5], [0.8, 1.5], [1.2, 0.5], [1.2, 1.5]]
    assert plants.names == (
        "as in the rig",
        "inertia ×0.8, friction ×0.5",
        "inertia ×0.8, friction ×1.5",
        "inertia ×1.2, friction ×0.5",
        "inertia ×1.2, friction ×1.5",
    )
    arrays = plants.arrays()
    assert arrays["mechanism.b0.mass"].tolist() == [[2.0], [1.6], [1.6], [2.4], [2.4]]
    assert arrays["joints.elbow.friction.viscous"][:, 0] == pytest.approx([0.1, 0.05, 0.15, 0.05, 0.15])
    assert {name.split(".", 1)[1] for name in plants.members["friction"]} == {
        "elbow.friction.coulomb",
        "elbow.friction.viscous",
    }


def test_random_plants_are_in_the_box_and_equal_for_equal_seeds(arm):
    one, same, other = (read_plants(arm, {"mass": 0.2}, 30, seed, set()) for seed in (1, 1, 2))
    assert (
        len(one) == 31 and np.array_equal(one.factors, same.factors) and not np.array_equal(one.factors, other.factors)
    )
    assert one.factors[0] == 1.0 and np.abs(one.factors - 1.0).max() <= 0.2 and np.ptp(one.factors) > 0.3


@pytest.mark.parametrize(
    ("given", "samples", "tuned"),
    [
        ({"inertai": 0.2}, None, set()),
        ({"inertia": "120 %"}, None, set()),
        ({"inertia": "much"}, None, set()),
        ({"inertia": None}, None, set()),
        ({"*.mass": 0.2, "*.inertia": 0.2, "*.coulomb": 0.2, "*.viscous": 0.2, "friction": 0.1}, None, set()),
        ({}, 3, set()),
        ({"friction": 0.2}, None, {"joints.elbow.friction.coulomb"}),
    ],
    ids=str,
)
def test_plants_that_do_not_fit(arm, given, samples, tuned, said):
    said(raised(Exception, read_plants, arm, given, samples, 0, tuned))


def test_friction_of_a_rig_without_friction(said):
    said(raised(Exception, read_plants, turntable(), {"friction": 0.2}, None, 0, set()))


def test_controllers_do_not_know_the_numbers_of_perturbed_plants(arm, said):
    """Gravity compensation holds the arm where it starts, unless a mass is another one than it knows."""
    mass = arm.numbers["mechanism.b1.mass"]
    heavy = {"mechanism.b1.mass": [mass, 1.5 * mass]}
    known = arm.rollouts(heavy, metrics=["error_max"])["error_max"].max(axis=1)
    unknown = arm.rollouts(heavy, metrics=["error_max"], unknown=["mechanism.b1.mass"])["error_max"].max(axis=1)
    assert known.max() < 1e-9 and unknown[0] < 1e-9 and unknown[1] > 1e-4
    said(raised(InputErrors, arm.rollouts, heavy, unknown=["arm.kp"]))


def test_a_run_of_a_perturbed_plant_equals_that_of_a_rig_with_other_feedforward():
    """The plant of the heavier body with the controller of the lighter one."""
    arm = Rig.from_dict(ARM)
    mass = arm.numbers["mechanism.b1.mass"]
    batch = arm.rollouts({"mechanism.b1.mass": [1.5 * mass]}, unknown=["mechanism.b1.mass"], keep="all")
    bodies = [ARM["mechanism"]["bodies"][0], {**ARM["mechanism"]["bodies"][1], "mass": 1.5 * mass}]
    heavier = Rig.from_dict({**ARM, "mechanism": {"bodies": bodies}})
    known = heavier.run()
    # the efforts of gravity differ by what the controller does not know, at the start
    lacking = known["elbow/effort"][0] - batch["elbow/effort"][0, 0]
    assert lacking == pytest.approx(-0.5 * mass * 9.81 * 0.1, rel=1e-3)


def test_the_section_has_lists_of_names_too(said):
    rig = turntable(tuning={"parameters": ["arm.kp"], "minimise": {"iae": 2.0}})
    assert rig.spec.tuning.parameters == {"arm.kp": None} and rig.spec.tuning.minimise == {"iae": 2.0}
    said(raised(InputErrors, turntable, tuning={"limits": 3}))
    assert "tuning" not in TURNTABLE
