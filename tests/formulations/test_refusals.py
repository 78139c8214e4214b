"""What a formulation cannot treat is refused with the joint, link or constraint, and with those that can treat it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from benchmarks.linkages import ladder
from cosim import InputError, load_rig
from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.trace import symbols
from cosim.mechanics.formulations import dependent_row, known_formulations, load_formulation
from cosim.mechanics.formulations._closing import constraint_rows
from cosim.mechanics.formulations._tree_state import TreeState
from cosim.mechanics.formulations.dependent_coordinates import DependentCoordinates
from cosim.mechanics.multibody import Model, assembly
from cosim.mechanics.multibody.mechanism import Joint, Link, Mechanism, Pose
from tests.formulations.mechanisms import model_of, planar_tree, random_state, relative_error, tree
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER


def message(name, equations):
    """Why a formulation refuses a mechanism, without what the refusal says of others."""
    text, able = str(raised(InputError, load_formulation, name, equations)).split("; those that can: ")
    assert name not in able.split(", ") and "separate_bodies" in able.split(", ")
    assert text.startswith(f"formulation: '{name}' cannot treat this mechanism: ")
    return text


def rotor(**more):
    """A link without mass on a shaft."""
    joint = Joint("shaft", "revolute", "ground", "disk", Pose.identity(), **more)
    return Mechanism("rotor", "ground", (Link("ground"), Link("disk")), (joint,))


def with_symbols(model):
    return model.equations.with_inertias(symbols("parameters", (10 * len(model.equations.tree.bodies),))[1])


def with_negative_inertia(model):
    numbers = np.array(model.inertial_parameters).ravel()
    numbers[14] = -5.0  # Jxx of b1
    return model.equations.with_inertias(numbers)


REFUSED = {
    "a slider between bodies": ("augmented_bodies", lambda random: tree(("free", "revolute", "prismatic"), random)),
    "a ground that moves": ("augmented_bodies", "mechanisms/car_axis.yaml"),
    "no barycentre": ("augmented_bodies", lambda random: rotor(rotor_inertia=0.1)),
    "no barycentre in a plane": ("planar_bodies", lambda random: rotor(rotor_inertia=0.1)),
    "axes that are not parallel": ("planar_bodies", lambda random: tree(("revolute", "revolute"), random)),
    "a ball joint at the ground": ("planar_bodies", lambda random: planar_tree(random, "spherical")),
    "inertias of symbols": ("gauss", lambda random: with_symbols(model_of("rotations"))),
    "energies of symbols": ("lagrange", lambda random: with_symbols(model_of("rotations"))),
    "a negative inertia": ("gauss", lambda random: with_negative_inertia(model_of("rotations"))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_formulation_cannot_treat(case, said):
    name, given = REFUSED[case]
    made = load_rig(FOLDER / given).plant.model if isinstance(given, str) else given(np.random.default_rng(0))
    made = Model(made) if isinstance(made, Mechanism) else made
    said(message(name, made.equations if isinstance(made, Model) else made))


def test_a_rotor_alone_turns():
    """The rotor gives its joint an inertia; without it the model refuses the coordinate."""
    model = Model(rotor(rotor_inertia=0.1))
    for name in ("newton_euler", "kane", "gauss", "lagrange", "wittenburg", "composite_bodies"):
        found = load_formulation(name, model.equations).forward_dynamics(np.zeros(1), np.ones(1), np.ones(1))
        assert found == pytest.approx([10.0])


LIGHT = ("revolute", "prismatic"), ("revolute", "spherical"), ("revolute", "free"), ("revolute", "universal", "screw")


@pytest.mark.parametrize("kinds", LIGHT, ids="-".join)
def test_links_without_mass_at_the_end_whose_joints_have_rotors(kinds, said):
    """Of every formulation: why it refuses them, or the accelerations of the separate bodies."""
    random = np.random.default_rng(0)
    rotors = {f"j{k}": {"rotor_inertia": 0.3 * k} for k in range(1, len(kinds))}
    chain = tree(kinds, random, **rotors)
    ground, first, *others = chain.links
    links = (ground, first, *(replace(link, inertial=None) for link in others))
    equations = Model(replace(chain, links=links), (1.0, -2.0, -9.0)).equations
    known = known_formulations()
    why = {name: module.refusal(equations) for name, module in known.items()}
    said(f"{name}: {reason}" for name, reason in why.items() if reason is not None)
    state = random_state(equations, random)
    expected = equations.forward_dynamics(*state)
    for name in (name for name, reason in why.items() if reason is None):
        assert relative_error(load_formulation(name, equations).forward_dynamics(*state), expected) < 1e-9


def test_elastic_links():
    equations = model_of("elastic chain").equations
    able = [name for name, module in known_formulations().items() if module.refusal(equations) is None]
    assert able == ["elastic_kane", "lagrange", "separate_bodies"]
    for name in set(known_formulations()) - set(able):
        assert message(name, equations).endswith("link 'a' is elastic, and its bodies are rigid")


def test_a_singular_configuration(said):
    """A parallelogram that lies flat can leave this position in two ways: dependent coordinates do not go through it;
    of those with multipliers the row that depends on the others has none there."""
    model = load_rig(FOLDER / "mechanisms/parallelogram.yaml").plant.model
    q, still, pushed = np.zeros(4), np.zeros(4), np.ones(4)
    formulation = load_formulation("dependent_coordinates", model.equations)
    said(raised(InputError, formulation.forward_dynamics, q, still, still))
    bent = q + np.array([0.5, -0.5, 0.5, -0.5])
    expected = model.equations.forward_dynamics(bent, still, still)
    np.testing.assert_allclose(formulation.forward_dynamics(bent, still, still), expected, rtol=1e-9)
    expected = model.equations.forward_dynamics(q, still, pushed)
    for name in ("newton_euler", "composite_bodies", "kane", "lagrange", "gauss", "wittenburg", "planar_bodies"):
        found = load_formulation(name, model.equations).forward_dynamics(q, still, pushed)
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
    formulation = DependentCoordinates(Model(ladder(2), (0.0, -9.81, 0.0)).equations)
    with pytest.raises(InputError, match=r"^dependent_coordinates: the configuration is singular: 'pin"):
        _ = formulation.choice
