"""Motion in absolute coordinates beside that in joint coordinates, and the drift of its constraints."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from benchmarks import linkages
from cosim import InputError, RunError, load_rig
from cosim.mechanics.formulations.cartesian import load
from cosim.mechanics.formulations.cartesian.absolute import integrate_bodies
from cosim.mechanics.multibody import Model, assembly
from cosim.mechanics.multibody.constraint_laws import point_on_curve
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    CoupledRotor,
    Inertial,
    Joint,
    Link,
    Mechanism,
    Mimic,
    Pose,
)
from tests.formulations.test_cartesian import model_of, random_tree
from tests.kit.messages import Said
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER


def sample(name: str) -> Model:
    return model_of(FOLDER / "mechanisms" / f"{name}.yaml")


def assembled(model: Model, guess: list[float], velocity: float) -> tuple[np.ndarray, np.ndarray]:
    """Closed loops and consistent velocities; the first dof as given."""
    first = np.arange(model.nv) == 0
    q = assembly.close_loops(model, np.array(guess), first)
    return q, assembly.consistent_velocities(model, q, velocity * first, first)


def in_joint_coordinates(model: Model, q: np.ndarray, v: np.ndarray, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) at the end, by SciPy; a few projections hold the loops."""
    for _ in range(20):
        span = (0.0, duration / 20)

        def flow(t, y):
            at, speed = y[: model.nq], y[model.nq :]
            a = model.forward_dynamics(at, speed, -np.asarray(model.friction_effort(speed)))
            return np.concatenate([np.asarray(model.equations.rate(at, speed), dtype=float), a])

        y = solve_ivp(flow, span, np.concatenate([q, v]), "DOP853", rtol=1e-9, atol=1e-10).y[:, -1]
        none = np.zeros(model.nv, dtype=bool)
        q, v = model.equations.project_onto_constraints(y[: model.nq], y[model.nq :], none)
    return np.asarray(q, dtype=float), np.asarray(v, dtype=float)


def test_the_double_pendulum_of_the_modelica_library() -> None:
    run = integrate_bodies(sample("double_pendulum"), np.zeros(2), np.zeros(2), 3.0, 1e-3)
    upper, lower = run.poses[-1, :, :, 0]  # x axes of the bars
    first = np.arctan2(upper[1], upper[0])
    second = np.arctan2(upper[0] * lower[1] - upper[1] * lower[0], upper @ lower)
    assert [first, second] == pytest.approx([-2.3179, -1.7365], abs=1e-4)
    assert run.velocities[-1] == pytest.approx([4.0941, -0.0504], abs=1e-4)
    assert run.t[-1] == pytest.approx(3.0)


# published states (IFToMM benchmarks A01, A02, A05; Hairer and Wanner II): name, duration, step, effort on the first
# dof, then of a body: a column of its pose (three axes and its origin), and x, y, z in ground axes
PUBLISHED = {
    "point_pendulum": (1.0, 1e-3, 0.0, (1, 3, [0.986291751132, -0.165010853126, 0.0]), 1e-9),
    "four_bars": (5.0, 1e-3, 0.0, (0, 0, [-0.811310460999, -0.584615545357, 0.0]), 1e-8),
    "andrews": (0.03, 1e-5, 0.033, (2, 0, [np.cos(0.040822240119626), np.sin(0.040822240119626), 0.0]), 1e-10),
    "flyball_governor": (0.5, 5e-5, 0.0, (1, 3, [0.0, 0.0, 0.743249425]), 1e-7),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_motions(name: str) -> None:
    duration, step, drive, (body, column, expected), tolerance = PUBLISHED[name]
    start, model = load_rig(FOLDER / "mechanisms" / f"{name}.yaml").plant.start, sample(name)
    effort = np.where(np.arange(model.nv) == 0, drive, 0.0)
    run = integrate_bodies(model, start.q, start.v, duration, step, effort=effort)
    assert run.poses[-1, body, :, column] == pytest.approx(expected, abs=tolerance)
    assert max(run.position_violation, run.velocity_violation) < 1e-12


MOTIONS = {"four_bar": ([1.0, -0.5, 1.5], 2.0), "slider_crank": ([0.5, -0.2, 0.4], 3.0)}


@pytest.mark.parametrize("name", MOTIONS)
def test_loops_move_as_in_joint_coordinates(name: str) -> None:
    model = sample(name)
    q, v = assembled(model, *MOTIONS[name])
    run = integrate_bodies(model, q, v, 1.0, 5e-4)
    model = model.without(assembly.find_redundant(model, q, np.zeros(model.nv, dtype=bool)))
    q, v = in_joint_coordinates(model, q, v, 1.0)
    assert run.poses[-1] == pytest.approx(np.asarray(model.body_poses(q)), abs=1e-7)
    assert run.velocities[-1] == pytest.approx(v, abs=1e-6)


def test_bodies_in_space_move_as_in_joint_coordinates() -> None:
    model = Model(random_tree(("free", "universal", "spherical", "screw", "cylindrical"), 4))
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng), rng.uniform(-1, 1, model.nv)
    run = integrate_bodies(model, q, v, 0.2, 1e-3)
    q, v = in_joint_coordinates(model, q, v, 0.2)
    assert run.poses[-1] == pytest.approx(np.asarray(model.body_poses(q)), abs=1e-6)
    assert run.velocities[-1] == pytest.approx(v, abs=1e-6)


def test_drift_is_controlled_and_reported() -> None:
    model = sample("four_bar")
    q, v = assembled(model, *MOTIONS["four_bar"])
    runs = {drift: integrate_bodies(model, q, v, 8.0, 2e-3, drift) for drift in ("projection", "baumgarte", "none")}
    position = {drift: run.position_violation for drift, run in runs.items()}
    assert position["projection"] < 1e-12
    assert runs["projection"].velocity_violation < 1e-12
    assert 1e-12 < position["baumgarte"] < 0.2 * position["none"]


def test_a_projection_keeps_a_knife_edge_but_not_its_place() -> None:
    model = sample("skate")
    v = assembly.consistent_velocities(model, np.zeros(3), np.array([1.0, 0.0, 2.0]), np.zeros(3, dtype=bool))
    run = integrate_bodies(model, np.zeros(3), v, 1.0, 1e-3)
    assert run.velocity_violation < 1e-13
    assert np.linalg.norm(run.poses[-1, 0, :2, 3]) > 0.1


# --- the jaw of a grab bucket: Mikhailov, Motion of a constrained rigid body, 2006 -----------------------------

MASS, INERTIA = 900.0, 260.0
P1, P2 = np.array([0.9, 0.6]), np.array([-0.5, -0.8])  # on the axis of the bucket; on the edge that scoops
DEPTH, START, REACH = 0.8, 0.2, 1.4  # e, b, d
A = (DEPTH - START) / REACH**2
GRAVITY = 9.81


def jaw() -> Model:
    """Point 1 stays on the line x = 0, point 2 on the parabola y = −e + A (x + d)²."""
    at = [Pose(np.eye(3), np.array([*point, 0.0])) for point in (P1, P2)]
    upright = Pose(np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.zeros(3))  # its y is x
    parabola = [A * REACH**2 - DEPTH, 2 * A * REACH, A]
    constraints = (
        Constraint("axis", point_on_curve([0.0]), (("ground", upright), ("jaw", at[0]))),
        Constraint("edge", point_on_curve(parabola), (("ground", Pose.identity()), ("jaw", at[1]))),
    )
    links = Link("ground"), Link("jaw", Inertial(MASS, np.zeros(3), np.diag([1.0, 1.0, INERTIA])))
    joint = Joint("plane", "planar", "ground", "jaw", Pose.identity())
    mechanism = Mechanism("grab bucket", "ground", links, (joint,), constraints=constraints)
    return Model(mechanism, (0.0, -GRAVITY, 0.0))


def turned(point: np.ndarray, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * point[0] - s * point[1], s * point[0] + c * point[1]])


def closed_form(angle: float, spin: float, force: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, v, [ẍ, ÿ, φ̈, N1, N2]) from the 5×5 system of the source, whose λ2 is the vertical part of the normal force
    N2."""
    a, b = turned(P1, angle), turned(P2, angle)
    x = -a[0]
    u = x + b[0]
    slope, bend = 2 * A * (u + REACH), 2 * A
    y = -DEPTH + A * (u + REACH) ** 2 - b[1]
    T = np.array([[1.0, 0.0, -a[1]], [-slope, 1.0, b[0] + slope * b[1]]]).T
    v = np.array([*np.linalg.solve(T[:2].T, -T[2] * spin), spin])
    u_rate = v[0] - b[1] * spin
    right = np.array([a[0] * spin**2, b[1] * spin**2 - slope * b[0] * spin**2 + bend * u_rate**2])
    M = np.diag([MASS, MASS, INERTIA])
    system = np.block([[M, T], [T.T, np.zeros((2, 2))]])
    solved = np.linalg.solve(system, np.concatenate([force, right]))
    return np.array([x, y, angle]), v, solved * np.array([1.0, 1.0, 1.0, 1.0, np.hypot(1.0, slope)])


def test_the_jaw_of_a_grab_bucket() -> None:
    formulation = load(jaw().equations)
    assert formulation.size == (3, 2)
    weight, applied = np.array([0.0, -MASS * GRAVITY, 0.0]), np.array([300.0, 4000.0, -700.0])
    for angle, spin in ((-0.3, 0.0), (-0.5, 0.7), (0.2, -1.5)):
        q, v, expected = closed_form(angle, spin, weight + applied)
        found = formulation.solution(q, v, applied)
        assert np.concatenate([found.acceleration, -found.border]) == pytest.approx(expected, rel=1e-11)


def test_the_jaw_scoops_as_its_closed_form() -> None:
    weight = np.array([0.0, -MASS * GRAVITY, 0.0])
    q, v, _ = closed_form(-0.3, 0.0, weight)
    run = integrate_bodies(jaw(), q, v, 0.4, 1e-3)

    def flow(t, y):
        return [y[1], closed_form(y[0], y[1], weight)[2][2]]

    expected = solve_ivp(flow, (0.0, 0.4), [-0.3, 0.0], "DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    assert abs(expected[0] + 0.3) > 0.1
    axis = run.poses[-1, 0, :2, 0]
    assert np.arctan2(axis[1], axis[0]) == pytest.approx(expected[0], abs=1e-8)
    assert run.velocities[-1][2] == pytest.approx(expected[1], abs=1e-8)


def mistake(model: Model, q: object, v: object, drift: str = "projection", step: float = 1e-3) -> str:
    given = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    return str(raised((InputError, RunError), integrate_bodies, model, *given, 0.5, step, drift))


NUMBERS: dict[str, dict[str, Any]] = {
    "a step of 0": {"step": 0.0},
    "a step that is no number": {"step": np.nan},
    "a negative duration": {"duration": -1.0},
    "a duration without end": {"duration": np.inf},
    "a duration below a step": {"duration": 1e-9},
    "a frequency of 0": {"drift": "baumgarte", "frequency": 0.0},
    "too many coordinates": {"q": np.zeros(3)},
    "velocities of two dimensions": {"v": np.zeros((2, 1))},
    "too few efforts": {"effort": np.zeros(1)},
    "a coordinate that is no number": {"q": np.array([0.0, np.nan])},
    "an infinite velocity": {"v": np.array([-np.inf, 0.0])},
    "an effort that is no number": {"effort": np.array([0.0, np.nan])},
    "an unknown drift control": {"drift": "projektion"},
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_that_cannot_be(case: str, said: Said) -> None:
    given: dict[str, Any] = {"q": np.zeros(2), "v": np.zeros(2), "duration": 0.5, "step": 1e-3} | NUMBERS[case]
    said(raised(InputError, integrate_bodies, sample("double_pendulum"), **given))


def test_what_a_run_in_absolute_coordinates_does_not_treat(said: Said) -> None:
    mechanism = random_tree(("revolute", "revolute"))
    first, second = mechanism.joints
    joints = replace(second, stiffness=5.0), replace(second, mimic=Mimic("revolute0"))
    sprung, follower = (Model(replace(mechanism, joints=(first, joint))) for joint in joints)
    rotor = CoupledRotor("motor", (("revolute0", 1.0), ("revolute1", 1.0)), 0.1)
    said(mistake(sprung, [0, 0], [0, 0]))
    said(mistake(follower, [0], [0]))
    said(mistake(Model(replace(mechanism, rotors=(rotor,))), [0, 0], [0, 0]))
    said(mistake(sample("arm_on_moving_base"), np.zeros(4), np.zeros(4)))
    bars = (
        ("left", "ground", (0.0, 0.0), 1.0),
        ("across", "left", (1.0, 0.0), 2.0),
        ("right", "ground", (2.0, 0.0), 1.0),
    )
    linkage = tuple((*bar, linkages.rod(length)) for *bar, length in bars)
    flat = linkages.planar("flat", linkage, [("right", (1.0, 0.0), "across", (2.0, 0.0))])
    said(mistake(Model(flat), np.zeros(3), np.zeros(3)))
    model = sample("four_bar")
    q, v = assembled(model, *MOTIONS["four_bar"])
    said(mistake(model, q + np.array([0.0, 0.1, 0.0]), v), r"0\.\d+")
    said(mistake(sample("double_pendulum"), [0, 0], [300.0, -500.0], "none", 0.1), r"(?<=at )\S+ s")


def test_the_start_of_a_rig_is_closed() -> None:
    """As the page on formulations says."""
    start, model = load_rig(FOLDER / "mechanisms" / "four_bar.yaml").plant.start, sample("four_bar")
    run = integrate_bodies(model, start.q, start.v, 0.01, 1e-3)
    assert (run.poses.shape, run.velocities.shape) == ((11, 3, 3, 4), (11, 3))
