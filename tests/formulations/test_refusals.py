"""What a formulation cannot treat is refused with the joint, link or constraint, and with those that can treat it."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import InputError, load_rig
from cosim.compile.trace import symbols
from cosim.formulations import known_formulations, load_formulation
from cosim.formulations.augmented_bodies import ROTATIONS
from cosim.multibody import Model
from cosim.multibody.mechanism import Joint, Link, Mechanism, Pose
from tests.formulations.mechanisms import model_of, planar_tree, tree
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
        "gauss", "the inertia of link 'b0' is a symbol, and its square root is taken in advance"
    )
    assert message("lagrange", model.equations.with_inertias(parameters)) == refused(
        "lagrange", "the inertia of link 'b0' is a symbol, and the energies are differentiated in advance"
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
