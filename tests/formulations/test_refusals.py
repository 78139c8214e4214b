"""What a formulation cannot treat is refused with the joint, link or constraint, and with those that can treat it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from cosim import InputError, load_rig
from cosim.bench.linkages import ladder
from cosim.compile import ArrayPort, compile
from cosim.compile.trace import symbols
from cosim.formulations import dependent_row, known_formulations, load_formulation
from cosim.formulations._closing import constraint_rows
from cosim.formulations._tree_state import TreeState
from cosim.formulations.augmented_bodies import ROTATIONS
from cosim.formulations.dependent_coordinates import DependentCoordinates
from cosim.multibody import Model, assembly
from cosim.multibody.mechanism import Joint, Link, Mechanism, Pose
from tests.formulations.mechanisms import model_of, planar_tree, random_state, relative_error, tree
from tests.kit.samples import FOLDER


def message(name, equations):
    with pytest.raises(InputError) as caught:
        load_formulation(name, equations)
    text, able = str(caught.value).split("; those that can: ")
    assert name not in able.split(", ") and "separate_bodies" in able.split(", ")
    return text


def refused(name, why):
    return f"formulation: '{name}' cannot treat this mechanism: {why}"


def test_augmented_bodies_need_rotations_between_bodies():
    random = np.random.default_rng(0)
    sliding = Model(tree(("free", "revolute", "prismatic"), random)).equations
    assert message("augmented_bodies", sliding) == refused(
        "augmented_bodies", "joint 'j2' does not keep a point fixed; joints between bodies must be rotations"
    )
    assert len(ROTATIONS) == 3


def test_augmented_bodies_hang_on_a_ground_at_rest():
    equations = load_rig(FOLDER / "mechanisms/car_axis.yaml").plant.model.equations
    assert message("augmented_bodies", equations) == refused(
        "augmented_bodies", "joint 'road' depends on time, and the ground of augmented bodies is at rest"
    )


@pytest.mark.parametrize("name", ["augmented_bodies", "planar_bodies"])
def test_a_tree_without_mass_has_no_barycentre(name):
    """The rotor gives its joint an inertia."""
    joint = Joint("shaft", "revolute", "ground", "disk", Pose.identity(), rotor_inertia=0.1)
    model = Model(Mechanism("rotor", "ground", (Link("ground"), Link("disk")), (joint,)))
    assert message(name, model.equations) == refused(name, "the tree of joint 'shaft' has no mass, so no barycentre")
    for other in ("newton_euler", "kane", "gauss", "lagrange", "wittenburg", "composite_bodies"):
        found = load_formulation(other, model.equations).forward_dynamics(np.zeros(1), np.ones(1), np.ones(1))
        assert found == pytest.approx([10.0])


LIGHT = {  # joints of a chain whose first link alone has mass -> why formulations refuse it
    ("revolute", "prismatic"): {
        "augmented_bodies": "joint 'j1' does not keep a point fixed; joints between bodies must be rotations",
        "cartesian": "bodies have no inertia along joint 'j1', only its rotor has",
        "planar_bodies": "joint 'j1' is not revolute; only the first joint may be planar instead",
    },
    ("revolute", "spherical"): {
        "cartesian": "bodies have no inertia along joint 'j1', only its rotor has",
        "planar_bodies": "joint 'j1' is not revolute; only the first joint may be planar instead",
    },
    ("revolute", "free"): {
        "augmented_bodies": "joint 'j1' does not keep a point fixed; joints between bodies must be rotations",
        "cartesian": "bodies have no inertia along joint 'j1', only its rotor has",
        "planar_bodies": "joint 'j1' is not revolute; only the first joint may be planar instead",
    },
    ("revolute", "universal", "screw"): {
        "augmented_bodies": "joint 'j2' does not keep a point fixed; joints between bodies must be rotations",
        "cartesian": "bodies have no inertia along joint 'j1', only its rotor has",
        "planar_bodies": "joint 'j1' is not revolute; only the first joint may be planar instead",
    },
}


@pytest.mark.parametrize("kinds", LIGHT)
def test_links_without_mass_at_the_end_whose_joints_have_rotors(kinds):
    """Of every formulation: why it refuses them, or the accelerations of the separate bodies."""
    random = np.random.default_rng(0)
    rotors = {f"j{k}": {"rotor_inertia": 0.3 * k} for k in range(1, len(kinds))}
    chain = tree(kinds, random, **rotors)
    ground, first, *others = chain.links
    links = (ground, first, *(replace(link, inertial=None) for link in others))
    equations = Model(replace(chain, links=links), (1.0, -2.0, -9.0)).equations
    known = known_formulations()
    assert {n: why for n, module in known.items() if (why := module.refusal(equations)) is not None} == LIGHT[kinds]
    state = random_state(equations, random)
    expected = equations.forward_dynamics(*state)
    for name in known.keys() - LIGHT[kinds].keys():
        assert relative_error(load_formulation(name, equations).forward_dynamics(*state), expected) < 1e-9


def test_a_coordinate_without_mass_is_refused_by_the_model():
    joint = Joint("shaft", "revolute", "ground", "disk", Pose.identity())
    with pytest.raises(InputError) as caught:
        Model(Mechanism("rotor", "ground", (Link("ground"), Link("disk")), (joint,)))
    assert str(caught.value) == (
        "<inline>: link 'disk' can move but has no inertia against the motion;"
        " give it or its descendants mass, or make joint 'shaft' fixed"
    )


def test_planar_bodies_have_parallel_axes():
    random = np.random.default_rng(0)
    equations = Model(tree(("revolute", "revolute"), random)).equations
    assert message("planar_bodies", equations) == refused(
        "planar_bodies", "the axis of joint 'j1' is not parallel to that of 'j0'"
    )
    equations = Model(planar_tree(random, "spherical")).equations
    assert message("planar_bodies", equations) == refused(
        "planar_bodies", "joint 'j0' is not revolute; only the first joint may be planar instead"
    )


def test_what_is_made_of_the_inertias_in_advance_needs_numbers():
    model = model_of("rotations")
    _, parameters = symbols("parameters", (10 * len(model.equations.tree.bodies),))
    assert message("gauss", model.equations.with_inertias(parameters)) == refused(
        "gauss", "the inertia of link 'b0' is a parameter, and its square root is taken in advance"
    )
    assert message("lagrange", model.equations.with_inertias(parameters)) == refused(
        "lagrange", "the inertia of link 'b0' is a parameter, and the energies are differentiated in advance"
    )
    numbers = np.array(model.inertial_parameters).ravel()
    numbers[14] = -5.0  # Jxx of b1
    assert message("gauss", model.equations.with_inertias(numbers)) == refused(
        "gauss", "the inertia of link 'b1' has a negative principal value, so it has no square root"
    )


def test_elastic_links():
    equations = model_of("elastic chain").equations
    able = [name for name, module in known_formulations().items() if module.refusal(equations) is None]
    assert able == ["elastic_kane", "lagrange", "separate_bodies"]
    for name in set(known_formulations()) - set(able):
        assert message(name, equations) == refused(name, "link 'a' is elastic, and its bodies are rigid")


# --- singular configurations ---

FLAT = {"crank": 0.0, "coupler": 0.0, "rocker": 0.0, "corner": 0.0}


def test_dependent_coordinates_at_a_singular_configuration():
    """A parallelogram that lies flat can leave this position in two ways."""
    model = load_rig(FOLDER / "mechanisms/parallelogram.yaml").plant.model
    q = np.array([FLAT[name] for name in model.dof_names])
    formulation = load_formulation("dependent_coordinates", model.equations)
    with pytest.raises(InputError) as caught:
        formulation.forward_dynamics(q, np.zeros(4), np.zeros(4))
    assert str(caught.value) == (
        "dependent_coordinates: the configuration is singular: 'corner/force_x' depends on the other rows of the"
        " constraints there, so it determines no coordinate; use a formulation with multipliers"
    )
    bent = q + np.array([0.5, -0.5, 0.5, -0.5])
    found = formulation.forward_dynamics(bent, np.zeros(4), np.zeros(4))
    np.testing.assert_allclose(found, model.equations.forward_dynamics(bent, np.zeros(4), np.zeros(4)), rtol=1e-9)


def test_formulations_with_multipliers_go_through_it():
    """The row that depends on the others has no multiplier there."""
    model = load_rig(FOLDER / "mechanisms/parallelogram.yaml").plant.model
    q = np.array([FLAT[name] for name in model.dof_names])
    expected = model.equations.forward_dynamics(q, np.zeros(4), np.ones(4))
    for name in ("newton_euler", "composite_bodies", "kane", "lagrange", "gauss", "wittenburg", "planar_bodies"):
        found = load_formulation(name, model.equations).forward_dynamics(q, np.zeros(4), np.ones(4))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-8, err_msg=name)


def four_bar_with_a_choice_that_fails():
    """(model, formulation, a configuration): its rocker, the independent coordinate, turns back there."""
    model = load_rig(FOLDER / "mechanisms/four_bar.yaml").plant.model
    formulation = DependentCoordinates(model.equations)
    formulation.__dict__["choice"] = [0, 1]
    kept = np.array([True, False, False])

    def closed(crank):
        return assembly.close_loops(model, np.array([crank, -0.9, -1.57]), kept)

    def determinant(crank):
        state = TreeState.of(model.equations, closed(crank), np.zeros(3), 0.0)
        return np.linalg.det(constraint_rows(state).matrix[:, :2])

    return model, formulation, closed(brentq(determinant, -0.9, 0.0, xtol=1e-15))


def test_machine_code_of_dependent_coordinates_has_no_number_where_its_choice_fails():
    model, formulation, q = four_bar_with_a_choice_that_fails()
    ports = [ArrayPort(name, (3,)) for name in ("q", "v", "tau")]
    code = compile(lambda q, v, tau: formulation.forward_dynamics(q, v, tau), ports, "four_bar", interpret=False)
    assert dependent_row(formulation, q) == "'pin/force_x'"
    assert dependent_row(formulation, q + 1e-3) is None
    assert dependent_row(formulation, q + 1e-3, least=0.1) == "'pin/force_x'"
    assert np.isnan(code(q, np.zeros(3), np.ones(3))).all()
    expected = model.equations.forward_dynamics(q, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(formulation.forward_dynamics(q, np.zeros(3), np.ones(3)), expected, rtol=1e-9, atol=1e-9)


def test_formulations_without_a_choice_have_no_dependent_row():
    model, _, q = four_bar_with_a_choice_that_fails()
    for name in known_formulations().keys() - {"dependent_coordinates"}:
        assert dependent_row(load_formulation(name, model.equations), q, least=0.1) is None
    assert dependent_row(None, q) is None


def test_rows_that_depend_on_each_other_everywhere_leave_no_choice():
    """In space a pin has rows that a planar linkage repeats."""
    model = Model(ladder(2), (0.0, -9.81, 0.0))
    formulation = DependentCoordinates(model.equations)
    with pytest.raises(InputError) as caught:
        _ = formulation.choice
    assert str(caught.value).startswith("dependent_coordinates: the configuration is singular: 'pin")
