"""Cartesian coordinates with multipliers beside the separate-body sweeps, which share no equation with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.rows_chain import mechanism as chain
from cosim import InputError, load_rig
from cosim.core.compile import ArrayPort, Compiled, compile
from cosim.core.types import Numeric
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.formulations.cartesian import Cartesian
from cosim.mechanics.formulations.cartesian import refusal as why_refused
from cosim.mechanics.formulations.cartesian.assembled import Plane
from cosim.mechanics.formulations.cartesian.ldlt import (
    body_joint_graph,
    border_multipliers,
    elimination_order,
    filled_blocks,
)
from cosim.mechanics.multibody import Model, assembly
from cosim.mechanics.multibody.joints import REVOLUTE
from cosim.mechanics.multibody.mechanism import (
    GeneralMotion,
    Inertial,
    Joint,
    Link,
    Mechanism,
    Mimic,
    Pose,
)
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER, few_samples
from tests.multibody.random_frames import turn

RIGID = (path for path in FOLDER.rglob("*.yaml") if not {"layouts", "elastic", "scenarios"} & set(path.parts))
SAMPLES = sorted(
    str(path.relative_to(FOLDER).with_suffix("")) for path in RIGID if path.stem not in ("flexible_arm", "quarter_car")
)
KINDS = ("revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "free", "screw")


def model_of(sample: Path) -> Model:
    spec = read_rig(sample).mechanism
    return Model(spec.description, spec.gravity)


def cartesian(model: Model) -> Cartesian:
    found = load_formulation("cartesian", model.equations)
    assert isinstance(found, Cartesian)
    return found


def random_state(model: Model, seed: int, t: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng, free = np.random.default_rng(seed), np.zeros(model.nv, dtype=bool)
    q = assembly.close_loops(model, model.random_configuration(rng), free, t)
    v = assembly.consistent_velocities(model, q, rng.uniform(-2, 2, model.nv), free, t)
    return q, v, rng.uniform(-10, 10, model.nv)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def assert_agrees(model: Model, seed: int = 0, within: float = 1e-11, t: float = 0.0) -> None:
    """With the separate bodies."""
    q, v, tau = random_state(model, seed, t)
    expected = model.equations.forward_dynamics(q, v, tau, t)
    found = load_formulation("cartesian", model.equations)
    assert difference(found.forward_dynamics(q, v, tau, t), expected) < within


def random_tree(kinds: tuple[str, ...], seed: int = 0) -> Mechanism:
    """A body for each kind, on random earlier ones, with frames, axes and inertias in general position."""
    rng = np.random.default_rng(seed)
    links, joints = [Link("ground")], []
    for k, kind in enumerate(kinds):
        half = rng.normal(size=(3, 3))
        inertial = Inertial(rng.uniform(0.5, 2), rng.normal(size=3), half @ half.T + np.eye(3))
        links.append(Link(f"body{k}", inertial))
        axes = turn(rng)
        joints.append(
            Joint(
                f"{kind}{k}",
                kind,
                links[rng.integers(k + 1)].name,
                f"body{k}",
                Pose(turn(rng), rng.normal(size=3)),
                axes[:, 2],
                axes[:, 0] if kind == "universal" else None,
                pitch=0.2 if kind == "screw" else 0.0,
            )
        )
    return Mechanism("random tree", "ground", tuple(links), tuple(joints))


COVERING = few_samples(SAMPLES, "mechanism")


@pytest.mark.parametrize("sample", COVERING)
def test_it_agrees_with_separate_bodies_on_samples(sample: str) -> None:
    assert_agrees(model_of(FOLDER / f"{sample}.yaml"), 0, 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_every_joint_of_the_table(kind: str) -> None:
    assert_agrees(Model(random_tree((kind, kind, "revolute", kind))), 1)


@pytest.mark.parametrize(("name", "t"), [("arm_on_moving_base", 0.4), ("car_axis", 1.3)])
def test_a_base_with_a_given_motion(name: str, t: float) -> None:
    assert_agrees(model_of(FOLDER / "mechanisms" / f"{name}.yaml"), 0, t=t)


def test_rotors_are_bodies_of_one_coordinate() -> None:
    model = Model(random_tree(KINDS, 3))
    rotors = np.random.default_rng(2).uniform(0.0, 3.0, model.nv) * (np.arange(model.nv) % 3)
    assert_agrees(model.with_rotor_inertia(rotors), 1)


def test_mimics_are_closing_rows() -> None:
    mechanism = chain(4)
    joints = list(mechanism.joints)
    joints[2] = replace(joints[2], mimic=Mimic("joint0", -1.5, 0.2))
    assert_agrees(Model(replace(mechanism, joints=tuple(joints))))


def test_a_body_without_inertia_where_its_joint_forbids_motion() -> None:
    mechanism = random_tree(("revolute", "prismatic", "revolute", "spherical"), 5)
    links = list(mechanism.links)
    links[1] = Link("body0")  # moves only with those that it carries
    links[2] = replace(links[2], inertial=Inertial(2.0, np.zeros(3), np.zeros((3, 3))))
    joints = [replace(joint, parent=f"body{k - 1}" if k else "ground") for k, joint in enumerate(mechanism.joints)]
    assert_agrees(Model(replace(mechanism, links=tuple(links), joints=tuple(joints))))


@pytest.mark.parametrize(
    "mechanism", [random_tree(KINDS[:4], 3), "slider_crank", chain(12)], ids=["tree", "slider_crank", "chain"]
)
def test_inertias_may_be_parameters(mechanism: Mechanism | str) -> None:
    """The piston of the slider–crank has no moment of inertia; the sweeps over 12 bodies are loops otherwise."""
    known = isinstance(mechanism, Mechanism)
    model = Model(mechanism) if known else load_rig(FOLDER / f"mechanisms/{mechanism}.yaml").plant.model
    q, v, tau = random_state(model, 1)
    numbers = np.array(model.inertial_parameters).ravel()

    def accelerations(parameters: Numeric) -> Numeric:
        equations = model.equations.with_inertias(parameters)
        return load_formulation("cartesian", equations).forward_dynamics(q, v, tau)

    compiled = compile(accelerations, [ArrayPort("parameters", numbers.shape)], "cartesian")
    for given in (numbers, 1.5 * numbers, numbers * np.repeat(np.linspace(0.7, 1.3, len(numbers) // 10), 10)):
        expected = model.equations.with_inertias(given).forward_dynamics(q, v, tau)
        assert difference(compiled(given), expected) < 1e-11


@pytest.mark.parametrize(
    ("sample", "size"),
    [
        ("mechanisms/double_pendulum", (6, 4)),
        ("mechanisms/slider_crank", (9, 8)),
        ("mechanisms/double_pendulum_cartesian", (6, 4)),
        ("mechanisms/slider_crank_cartesian", (9, 8)),
        ("mechanisms/grab_jaw", (3, 2)),
        ("ur5_sim", (36, 30)),
    ],
)
def test_the_size_of_the_equations(sample: str, size: tuple[int, int]) -> None:
    assert cartesian(model_of(FOLDER / f"{sample}.yaml")).size == size


@pytest.mark.parametrize("tilt", [0.0, 0.4])
def test_a_plane_in_any_direction(tilt: float) -> None:
    c, s = np.cos(tilt), np.sin(tilt)
    turn = Pose(np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]), np.zeros(3))
    links = [Link("ground"), *(Link(f"body{k}", Inertial(1.0, np.ones(3), np.diag([1.0, 2.0, 2.5]))) for k in range(3))]
    joints = [
        Joint("hinge", "revolute", "ground", "body0", turn),
        Joint("slide", "prismatic", "body0", "body1", Pose(np.eye(3), np.ones(3)), np.array([0.6, 0.8, 0.0])),
        Joint("tip", "planar", "body1", "body2", Pose(np.eye(3), np.ones(3))),
    ]
    model = Model(Mechanism("in a plane", "ground", tuple(links), tuple(joints)))
    formulation = cartesian(model)
    assert isinstance(formulation.coordinates, Plane)
    assert formulation.size == (9, 4)
    assert_agrees(model)


def compiled(model: Model, formulation: Cartesian) -> Compiled:
    ports = [ArrayPort("q", (model.nq,)), ArrayPort("v", (model.nv,)), ArrayPort("tau", (model.nv,))]
    made = compile(lambda q, v, tau: formulation.forward_dynamics(q, v, tau), ports, "cartesian")
    assert isinstance(made, Compiled)
    return made


@pytest.mark.parametrize("sample", ["mechanisms/slider_crank"])
def test_compiled_and_interpreted_agree(sample: str) -> None:
    model = model_of(FOLDER / f"{sample}.yaml")
    formulation = cartesian(model)
    q, v, tau = random_state(model, 0)
    expected = formulation.forward_dynamics(q, v, tau)
    assert difference(compiled(model, formulation)(q, v, tau), expected) < 1e-12


def test_many_bodies_are_loops_in_machine_code() -> None:
    few, many = (Model(chain(n)) for n in (40, 80))
    code = [compiled(model, cartesian(model)) for model in (few, many)]
    per_body = [code[0].routine.operations / 40, code[1].routine.operations / 80]
    assert per_body[1] == pytest.approx(per_body[0], rel=1e-3)
    q, v, tau = random_state(many, 0)
    assert difference(code[1](q, v, tau), many.forward_dynamics(q, v, tau)) < 1e-10


def test_the_reactions_of_a_hanging_chain_carry_its_weight() -> None:
    model = Model(chain(3), gravity=(9.81, 0.0, 0.0))  # along the chain, at rest
    found = cartesian(model).solution(np.zeros(3), np.zeros(3), np.zeros(3))
    along = [np.abs(multipliers[:3]).max() for multipliers in found.joints]
    assert along == pytest.approx([3 * 9.81, 2 * 9.81, 9.81])
    assert found.acceleration == pytest.approx(np.zeros(3))


def test_the_reactions_of_a_loop_are_those_of_separate_bodies() -> None:
    model = model_of(FOLDER / "mechanisms" / "slider_crank.yaml")
    q, v, tau = random_state(model, 0)
    formulation, by_name = cartesian(model), dict(zip(model.constraint_rows, model.reactions(q, v, tau), strict=True))
    border = formulation.solution(q, v, tau).border
    assert border == pytest.approx([by_name["wrist_pin/force_x"], by_name["wrist_pin/force_y"]])


@pytest.mark.parametrize("n", [1, 7, 60])
def test_no_block_is_filled_when_vertices_come_after_their_children(n: int) -> None:
    rng = np.random.default_rng(n)
    parents = [-1, *(int(rng.integers(k)) for k in range(1, n))]
    edges = body_joint_graph(parents)
    assert filled_blocks(edges, elimination_order(parents)) == []


def test_a_row_that_repeats_others_has_no_multiplier() -> None:
    rows = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [1.0, 3.0, -1.0]])  # the last one is the sum
    found = border_multipliers(rows @ rows.T, rows @ np.array([1.0, -2.0, 0.5]), list((rows**2).sum(axis=1)))
    assert found[2] == 0.0
    assert rows[:2] @ rows[:2].T @ found[:2] == pytest.approx(rows[:2] @ np.array([1.0, -2.0, 0.5]))


@pytest.mark.parametrize("sample", ["ur5_sim", "mechanisms/triple_pendulum"])
def test_the_factor_has_the_blocks_of_the_matrix_and_solves_it(sample: str) -> None:
    model = model_of(FOLDER / f"{sample}.yaml")
    q, v, tau = random_state(model, 0)
    formulation = cartesian(model)
    local = formulation.body_equations(formulation.placements(q, v), tau, 0.0)
    parents, n = formulation.sweeps.parents, len(local)
    order = elimination_order(parents)
    sizes = {k: len(each.force) for k, each in enumerate(local)} | {
        n + k: len(each.given) for k, each in enumerate(local)
    }
    places = dict(
        zip(order, np.split(np.arange(sum(sizes.values())), np.cumsum([sizes[v] for v in order])), strict=False)
    )
    matrix, right = np.zeros((sum(sizes.values()),) * 2), np.zeros(sum(sizes.values()))
    for k, each in enumerate(local):
        body, joint = places[k], places[n + k]
        matrix[np.ix_(body, body)] = each.blocks.inertia
        couplings = [(body, each.blocks.own)]
        right[body] += each.force[:, 0]
        right[joint] = each.given[:, 0]
        if parents[k] >= 0:
            couplings.append((places[parents[k]], each.blocks.parent))
            right[places[parents[k]]] += each.on_parent[:, 0]
        for of_body, rows in couplings:
            matrix[np.ix_(joint, of_body)], matrix[np.ix_(of_body, joint)] = rows, rows.T
    found = np.linalg.solve(matrix, right)
    solution = formulation.solution(q, v, tau)
    for k in range(n):
        assert solution.bodies[k] == pytest.approx(found[places[k]], rel=1e-9, abs=1e-9)
        assert solution.joints[k] == pytest.approx(-found[places[n + k]], rel=1e-9, abs=1e-9)
    lower = np.tril(_eliminated(matrix))
    for a in order:
        for b in order:
            if b != a and not matrix[np.ix_(places[a], places[b])].any():
                assert np.abs(lower[np.ix_(places[a], places[b])]).max() < 1e-9 * np.abs(lower).max()


def _eliminated(matrix: np.ndarray) -> np.ndarray:
    """L of the dense LDLᵀ without pivoting."""
    left, lower = matrix.copy(), np.zeros_like(matrix)
    for k in range(len(matrix)):
        lower[k:, k] = left[k:, k] / left[k, k]
        left[k:, k:] -= np.outer(lower[k:, k], left[k, k:])
    return lower


def test_bodies_before_joints_fill_blocks() -> None:
    edges = body_joint_graph([-1, 0, 1])
    assert len(filled_blocks(edges, [0, 1, 2, 3, 4, 5])) == 2  # neighbouring joints of two bodies


def test_a_loop_fills_the_column_of_its_rows_only() -> None:
    parents = [-1, 0, 1, -1]
    edges = body_joint_graph(parents, loops=[(2, 3)])
    assert len(filled_blocks(edges, elimination_order(parents, loops=1))) == 6  # beside what its bodies hang on


@pytest.mark.parametrize(
    ("sample", "filled"),
    [("ur5_sim", 0), ("pendulum_chain", 0), ("mechanisms/flyball_governor", 0), ("mechanisms/slider_crank", 4)],
)
def test_mechanisms_without_loops_fill_no_block(sample: str, filled: int) -> None:
    assert cartesian(model_of(FOLDER / f"{sample}.yaml")).filled_blocks == filled


def test_the_number_of_operations_is_linear_in_the_bodies() -> None:
    n = 2, 4, 6, 8
    counts = np.array([compiled(model, cartesian(model)).routine.operations for model in map(Model, map(chain, n))])
    steps = np.diff(counts)
    assert steps.max() / steps.min() < 1.05


def test_what_it_refuses() -> None:
    """A joint without a composition, and a body whose only inertia is a rotor's."""
    motion = GeneralMotion(("angle",), ("rad",), REVOLUTE.place)
    mechanism = chain(2)
    own = replace(mechanism.joints[1], kind="general", motion=motion)
    model, place = Model(replace(mechanism, joints=(mechanism.joints[0], own))), "rigs/car.yaml:3 mechanism.formulation"
    what, able = str(raised(InputError, load_formulation, "cartesian", model.equations, place)).split(
        "; those that can: "
    )
    why = "joint 'joint1' is of type general, which is no composition of elementary constraints"
    assert what == f"{place}: 'cartesian' cannot treat this mechanism: {why}"
    assert "separate_bodies" in able.split(", ")
    links = (*mechanism.links[:-1], Link("body1"))
    light = Model(replace(mechanism, links=links), rotor_inertia={"joint1": 0.1})
    assert why_refused(light.equations) == "bodies have no inertia along joint 'joint1', only its rotor has"
