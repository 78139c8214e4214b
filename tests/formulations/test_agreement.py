"""Every formulation in joint coordinates gives the accelerations of the separate bodies, for all samples it treats."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cosim import load_rig
from cosim.bench.chains import general_chain
from cosim.bench.peers import MissingPeer
from cosim.bench.robots import PANDA, TALOS, load_robot
from cosim.compile import ArrayPort, compile
from cosim.formulations import known_formulations, load_formulation
from cosim.formulations.dependent_coordinates import DependentCoordinates
from cosim.multibody import Model
from cosim.multibody.description.floating_base import with_floating_base
from cosim.multibody.mechanism import Joint, Link, Mechanism, Pose, Spring
from tests.formulations.mechanisms import MECHANISMS, model_of, planar_tree, random_state, relative_error
from tests.kit.levels import one_of_each
from tests.kit.samples import FOLDER, covering_samples

AGREEMENT = 1e-9  # relative

NOT_PLANAR = [
    "arm_can",
    "arm_mixed",
    "arm_sim",
    "axis_behind_bus",
    "cart_pole",
    "crane",
    "drives/hydraulic_boom",
    "drives/hydraulic_full",
    "drives/hydraulic_simple",
    "drives/industrial_arm",
    "impedance/ur5_contact",
    "impedance/ur5_impedance",
    "mechanisms/arm_on_moving_base",
    "mechanisms/car_axis",
    "mechanisms/floating_chain",
    "mechanisms/flyball_governor",
    "mechanisms/hoist",
    "mechanisms/measuring_arm",
    "mechanisms/platform",
    "mechanisms/point_pendulum",
    "mechanisms/release",
    "mechanisms/rolling_wheel",
    "mechanisms/slider_crank",
    "mechanisms/slider_crank_cartesian",
    "mechanisms/stick_slip",
    "mechanisms/swinging_cylinder",
    "prescribed_wrist",
    "ur5_circle",
    "ur5_realtime",
    "ur5_sim",
    "ur5_time_optimal",
]
NOT_ROTATIONS = [
    "drives/hydraulic_boom",
    "mechanisms/arm_on_moving_base",
    "mechanisms/car_axis",
    "mechanisms/flyball_governor",
    "mechanisms/point_pendulum",
    "mechanisms/release",
    "mechanisms/swinging_cylinder",
]
# formulation -> the samples that it cannot treat; every other sample must agree
REFUSED: dict[str, list[str]] = {
    "newton_euler": [],
    "composite_bodies": [],
    "kane": [],
    "elastic_kane": [],
    "lagrange": [],
    "gauss": [],
    "wittenburg": [],
    "dependent_coordinates": [],
    "augmented_bodies": NOT_ROTATIONS,
    "planar_bodies": NOT_PLANAR,
}
SAMPLES = sorted(
    str(file.relative_to(FOLDER).with_suffix(""))
    for folder in (".", "mechanisms", "drives", "impedance", "dynamometer", "elastic")
    for file in (FOLDER / folder).glob("*.yaml")
)


@cache
def plant_of(sample):
    return load_rig(FOLDER / f"{sample}.yaml").plant


def errors(equations, formulations, states):
    """Formulation -> the largest error of its accelerations, for those that can treat the mechanism."""
    known = known_formulations()
    expected = [equations.forward_dynamics(*state) for state in states]
    found = {}
    for name in formulations:
        if known[name].refusal(equations) is None:
            formulation = load_formulation(name, equations)
            pairs = zip(states, expected, strict=True)
            found[name] = max(relative_error(formulation.forward_dynamics(*state), a) for state, a in pairs)
    return found


def agree(found):
    assert {name: error for name, error in found.items() if not error < AGREEMENT} == {}


@pytest.mark.parametrize("sample", covering_samples(SAMPLES, "mechanism"))
def test_samples(sample):
    plant = plant_of(sample)
    equations, random = plant.model.equations, np.random.default_rng(1)
    closed = np.asarray(plant.start.q, dtype=float), *random_state(equations, random)[1:]
    nearby = [random_state(equations, random, plant.start.q) for _ in range(2)]
    found = errors(equations, REFUSED, [closed, *nearby])
    agree(found)
    rigid = not sample.startswith("elastic/")
    treated = {name for name in REFUSED if sample not in REFUSED[name]} if rigid else TREATED["elastic chain"]
    assert set(found) == treated


TREATED = {
    "every joint": set(REFUSED) - {"augmented_bodies", "planar_bodies"},
    "mimics": set(REFUSED) - {"augmented_bodies", "planar_bodies"},
    "springs and laws": set(REFUSED) - {"planar_bodies"},
    "loop and knife edge": set(REFUSED) - {"planar_bodies"},
    "rotations": set(REFUSED) - {"planar_bodies"},
    "floating": set(REFUSED) - {"planar_bodies"},
    "planar": set(REFUSED),
    "planar floating": set(REFUSED),
    "elastic chain": {"elastic_kane", "lagrange"},
    "elastic loop": {"elastic_kane", "lagrange"},
}


@one_of_each
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", MECHANISMS)
def test_random_mechanisms(name, seed):
    equations, random = model_of(name, seed).equations, np.random.default_rng(seed)
    found = errors(equations, REFUSED, [random_state(equations, random) for _ in range(3)])
    agree(found)
    assert set(found) == TREATED[name]


def test_rotors_of_joints_with_axes_that_rotate():
    """A rotor adds its inertia to its dof, and no Coriolis efforts."""
    for name in ("rotations", "floating"):
        plain, random = model_of(name), np.random.default_rng(6)
        equations = plain.with_rotor_inertia(random.uniform(0.1, 0.5, plain.nv)).equations
        agree(errors(equations, [*REFUSED, "cartesian"], [random_state(equations, random) for _ in range(3)]))


@pytest.mark.parametrize("base", ["revolute", "planar"])
def test_forces_on_planar_bodies(base):
    """Beside gravity, whose moments about the barycentres of a floating tree vanish."""
    random = np.random.default_rng(7)
    ends = ("ground", random.uniform(-1, 1, 3)), ("b1", random.uniform(-1, 1, 3)), ("b3", random.uniform(-1, 1, 3))
    springs = (Spring("between", ends[1:], 20.0, 3.0, 0.4), Spring("to ground", ends[:2], 10.0, 1.0, 0.1))
    equations = Model(replace(planar_tree(random, base), springs=springs), gravity=(1.0, -2.0, -9.0)).equations
    found = errors(equations, [*REFUSED, "cartesian"], [random_state(equations, random) for _ in range(3)])
    agree(found)
    assert "planar_bodies" in found


def test_stabilised_constraints():
    equations = model_of("loop and knife edge", baumgarte_rate=7.0).equations
    plain = model_of("loop and knife edge").equations
    states = [random_state(equations, np.random.default_rng(3))]
    agree(errors(equations, REFUSED, states))
    difference = equations.forward_dynamics(*states[0]) - plain.forward_dynamics(*states[0])
    assert np.abs(difference).max() > 1e-3


def test_mechanisms_that_cannot_move():
    joint = Joint("weld", "fixed", "wall", "lamp", Pose.identity())
    equations = Model(Mechanism("lamp", "wall", (Link("wall"), Link("lamp")), (joint,))).equations
    none = np.zeros(0)
    for name in REFUSED:
        assert load_formulation(name, equations).forward_dynamics(none, none, none).shape == (0,)


def test_chains_whose_sweeps_are_loops():
    """Sweeps over 50 bodies are loops in machine code."""
    equations = general_chain(50).equations
    assert equations.rolled
    agree(errors(equations, REFUSED, [random_state(equations, np.random.default_rng(0))]))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="this machine has no numbers of more than 64 bits")
def test_least_constraint_is_more_accurate_than_mass_matrices():
    """Beside numbers of 64 bits of mantissa."""
    equations = general_chain(30).equations
    *state, _ = random_state(equations, np.random.default_rng(0))
    exact = load_formulation("newton_euler", equations).forward_dynamics(*(x.astype(np.longdouble) for x in state))
    assert exact.dtype == np.longdouble

    def error(name):
        return relative_error(load_formulation(name, equations).forward_dynamics(*state), exact)

    assert error("gauss") < 0.2 * min(error(name) for name in ("newton_euler", "composite_bodies", "kane", "lagrange"))


@pytest.mark.parametrize(("robot", "floating"), [(PANDA, False), (PANDA, True), (TALOS, True)])
def test_robots(robot, floating):
    """The fingers of Panda are coupled; TALOS has 32 joints."""
    try:
        mechanism = load_robot(robot).model.mechanism
    except MissingPeer as missing:
        pytest.skip(str(missing))
    equations = Model(with_floating_base(mechanism) if floating else mechanism).equations
    agree(errors(equations, REFUSED, [random_state(equations, np.random.default_rng(2))]))


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in ("gauss", "lagrange")])
def test_inertias_may_be_symbols(name):
    model = model_of("planar floating")
    equations, nominal = model.equations, np.array(model.inertial_parameters).ravel()
    q, v, tau, _ = random_state(equations, np.random.default_rng(4))

    def accelerations(parameters):
        return load_formulation(name, equations.with_inertias(parameters)).forward_dynamics(q, v, tau)

    compiled = compile(accelerations, [ArrayPort("parameters", nominal.shape)], name)
    for factor in (1.0, 1.5):
        expected = equations.with_inertias(factor * nominal).forward_dynamics(q, v, tau)
        assert relative_error(compiled(factor * nominal), expected) < AGREEMENT


@one_of_each
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "mechanism", ["loop and knife edge", "springs and laws", "planar floating", "every joint", "elastic loop"]
)
def test_machine_code_is_the_python(name, mechanism):
    if name not in TREATED[mechanism]:
        return
    equations = model_of(mechanism).equations
    formulation, state = load_formulation(name, equations), random_state(equations, np.random.default_rng(5))
    nq, nv = equations.nq, equations.nv
    ports = [ArrayPort("q", (nq,)), ArrayPort("v", (nv,)), ArrayPort("tau", (nv,)), ArrayPort("t", ())]
    compiled = compile(formulation.forward_dynamics, ports, name)
    assert relative_error(compiled(*state), np.asarray(formulation.forward_dynamics(*state))) < 1e-11


def test_machine_code_of_dependent_coordinates_is_good_away_from_the_state_of_its_choice():
    equations = plant_of("mechanisms/four_bar").model.equations
    formulation = load_formulation("dependent_coordinates", equations)
    assert isinstance(formulation, DependentCoordinates) and len(formulation.choice) == 2
    n = equations.nv
    ports = [ArrayPort(name, (n,)) for name in ("q", "v", "tau")]
    compiled = compile(formulation.forward_dynamics, ports, "four_bar")
    for seed in range(20):
        *state, _ = random_state(equations, np.random.default_rng(seed), plant_of("mechanisms/four_bar").start.q)
        assert relative_error(compiled(*state), equations.forward_dynamics(*state)) < AGREEMENT
