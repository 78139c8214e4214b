"""Every formulation in joint coordinates gives the accelerations of the separate bodies, for all samples it treats."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks.chains import general_chain
from benchmarks.peers import MissingPeer
from benchmarks.robots import PANDA, TALOS, load_robot
from cosim import load_rig
from cosim.core.compile import ArrayPort, compile
from cosim.mechanics.formulations import known_formulations, load_formulation
from cosim.mechanics.formulations.dependent_coordinates import DependentCoordinates
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.mechanism import Joint, Link, Mechanism, Pose, Spring, with_floating_base
from cosim.rig.sections.rig_spec import read_rig
from tests.formulations.mechanisms import MECHANISMS, model_of, planar_tree, random_state, relative_error, sprung
from tests.kit.samples import FOLDER, few_samples

AGREEMENT = 1e-9  # relative

# formulation -> the samples that it cannot treat; every other sample must agree
FORMULATIONS = [
    "newton_euler",
    "composite_bodies",
    "kane",
    "elastic_kane",
    "lagrange",
    "gauss",
    "wittenburg",
    "dependent_coordinates",
    "augmented_bodies",
    "planar_bodies",
]
FOLDERS = ".", "mechanisms", "drives", "impedance", "dynamometer", "elastic"
FILES = [path for folder in FOLDERS for path in (FOLDER / folder).glob("*.yaml")]
SAMPLES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FILES)
COVERING = few_samples(SAMPLES, "mechanism")


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


@pytest.mark.parametrize("sample", COVERING)
def test_samples(sample):
    plant = plant_of(sample)
    equations, random = plant.model.equations, np.random.default_rng(1)
    closed = np.asarray(plant.start.q, dtype=float), *random_state(equations, random)[1:]
    found = errors(equations, FORMULATIONS, [closed, random_state(equations, random, plant.start.q)])
    agree(found)
    assert set(found) == {name for name in FORMULATIONS if sample not in refused_samples()[name]}


@cache
def refused_samples():
    """Formulation -> the samples that it cannot treat."""
    specs = {sample: read_rig(FOLDER / f"{sample}.yaml").mechanism for sample in SAMPLES}
    equations = {sample: Model(spec.description, spec.gravity).equations for sample, spec in specs.items()}
    known = known_formulations()
    return {n: [s for s, given in equations.items() if known[n].refusal(given) is not None] for n in FORMULATIONS}


def test_samples_that_are_refused(said):
    """Every other sample is treated."""
    said(f"{name}: {', '.join(samples) or 'none'}" for name, samples in refused_samples().items())


TREATED = {
    "every joint": set(FORMULATIONS) - {"augmented_bodies", "planar_bodies"},
    "mimics": set(FORMULATIONS) - {"augmented_bodies", "planar_bodies"},
    "springs and laws": set(FORMULATIONS) - {"planar_bodies"},
    "loop and knife edge": set(FORMULATIONS) - {"planar_bodies"},
    "rotations": set(FORMULATIONS) - {"planar_bodies"},
    "floating": set(FORMULATIONS) - {"planar_bodies"},
    "planar": set(FORMULATIONS),
    "planar floating": set(FORMULATIONS),
    "elastic chain": {"elastic_kane", "lagrange"},
    "elastic loop": {"elastic_kane", "lagrange"},
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_random_mechanisms(name):
    equations, random = model_of(name).equations, np.random.default_rng(0)
    found = errors(equations, FORMULATIONS, [random_state(equations, random) for _ in range(3)])
    agree(found)
    assert set(found) == TREATED[name]


@pytest.mark.parametrize("name", MECHANISMS)
def test_springs_in_joints(name):
    """In every joint that may have one, beside rotors."""
    random = np.random.default_rng(8)
    plain = Model(sprung(MECHANISMS[name](random), random), gravity=(1.0, -2.0, -9.0))
    equations = plain.with_rotor_inertia(random.uniform(0.1, 0.5, plain.nv)).equations
    assert equations.constraints.joint_springs is not None
    found = errors(equations, [*FORMULATIONS, "cartesian"], [random_state(equations, random) for _ in range(2)])
    agree(found)
    assert TREATED[name] <= set(found)


def test_rotors_of_joints_with_axes_that_rotate():
    """A rotor adds its inertia to its dof, and no Coriolis efforts."""
    for name in ("rotations", "floating"):
        plain, random = model_of(name), np.random.default_rng(6)
        equations = plain.with_rotor_inertia(random.uniform(0.1, 0.5, plain.nv)).equations
        agree(errors(equations, [*FORMULATIONS, "cartesian"], [random_state(equations, random) for _ in range(3)]))


@pytest.mark.parametrize("base", ["revolute", "planar"])
def test_forces_on_planar_bodies(base):
    """Beside gravity, whose moments about the barycentres of a floating tree vanish."""
    random = np.random.default_rng(7)
    ends = ("ground", random.uniform(-1, 1, 3)), ("b1", random.uniform(-1, 1, 3)), ("b3", random.uniform(-1, 1, 3))
    springs = (Spring("between", ends[1:], 20.0, 3.0, 0.4), Spring("to ground", ends[:2], 10.0, 1.0, 0.1))
    equations = Model(replace(planar_tree(random, base), springs=springs), gravity=(1.0, -2.0, -9.0)).equations
    found = errors(equations, [*FORMULATIONS, "cartesian"], [random_state(equations, random) for _ in range(3)])
    agree(found)
    assert "planar_bodies" in found


def test_stabilised_constraints():
    equations = model_of("loop and knife edge", baumgarte_rate=7.0).equations
    plain = model_of("loop and knife edge").equations
    states = [random_state(equations, np.random.default_rng(3))]
    agree(errors(equations, FORMULATIONS, states))
    difference = equations.forward_dynamics(*states[0]) - plain.forward_dynamics(*states[0])
    assert np.abs(difference).max() > 1e-3


def test_mechanisms_that_cannot_move():
    joint = Joint("weld", "fixed", "wall", "lamp", Pose.identity())
    equations = Model(Mechanism("lamp", "wall", (Link("wall"), Link("lamp")), (joint,))).equations
    none = np.zeros(0)
    for name in FORMULATIONS:
        assert load_formulation(name, equations).forward_dynamics(none, none, none).shape == (0,)


def test_chains_whose_sweeps_are_loops():
    """Sweeps over 50 bodies are loops in machine code."""
    equations = general_chain(48).equations
    assert equations.rolled
    agree(errors(equations, FORMULATIONS, [random_state(equations, np.random.default_rng(0))]))


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


@pytest.mark.parametrize(("robot", "floating"), [(PANDA, False), (TALOS, True)])
def test_robots(robot, floating):
    """The fingers of Panda are coupled; TALOS has 32 joints."""
    try:
        mechanism = load_robot(robot).model.mechanism
    except MissingPeer as missing:
        pytest.skip(str(missing))
    equations = Model(with_floating_base(mechanism) if floating else mechanism).equations
    agree(errors(equations, FORMULATIONS, [random_state(equations, np.random.default_rng(2))]))


@pytest.mark.parametrize("name", [name for name in FORMULATIONS if name not in ("gauss", "lagrange")])
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


COMPILED = {
    "planar floating": ("newton_euler", "composite_bodies", "kane", "augmented_bodies", "planar_bodies"),
    "loop and knife edge": ("lagrange", "gauss"),
    "springs and laws": ("wittenburg", "dependent_coordinates"),
    "every joint": ("newton_euler",),
    "elastic loop": ("elastic_kane",),
}


@pytest.mark.parametrize(("mechanism", "name"), [(key, name) for key, names in COMPILED.items() for name in names])
def test_machine_code_is_the_python(mechanism, name):
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
    for seed in range(8):
        *state, _ = random_state(equations, np.random.default_rng(seed), plant_of("mechanisms/four_bar").start.q)
        assert relative_error(compiled(*state), equations.forward_dynamics(*state)) < AGREEMENT
