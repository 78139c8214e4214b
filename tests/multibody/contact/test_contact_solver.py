"""Contacts with friction: the law holds on problems of robots and drawn ones, and what is missing is always said."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cosim.core.compile import Routine, compile
from cosim.core.compile.jit import vector_lanes
from cosim.core.compile.routine import call_when, with_callees
from cosim.core.compile.while_loop import WhileLoop
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from tests.compile.calls import ports
from tests.multibody.contact.contact_problems import (
    ROBOTS,
    Problem,
    compiled,
    drawn,
    natural_map,
    of_robot,
    regular,
    violation,
)

LANES = vector_lanes()
CERTAIN = 5000  # passes within which every problem of the robots is solved


@cache
def solver(contacts, *arguments):
    return compiled(contacts, *arguments)


# --- problems of robots -----------------------------------------------------------------------------


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("name", ROBOTS)
def test_the_law_holds_in_landing_robots(name, warm):
    solve = solver(of_robot(name)[0].contacts, CERTAIN)
    for problem in of_robot(name):
        W, c, friction, before = problem.arrays
        impulses, passes, residual, converged = solve(W, c, friction, before if warm else 0.0 * before)
        assert violation(problem, impulses) <= 1e-8 and passes <= CERTAIN
        assert abs(natural_map(problem, impulses) - residual) <= 1e-14
        assert residual <= 1e-8 and converged == (residual <= 1e-10)


def test_a_quadruped_needs_one_pass():
    solve = solver(4, 8)
    assert {float(solve(*problem.arrays)[1]) for problem in of_robot("solo12")} == {1.0}


@pytest.mark.parametrize("stiffness", [1e6, 1e7])
def test_springs_in_the_points_make_a_humanoid_fit_for_a_tick(stiffness):
    """Springs along t1, t2 and n, implicit in a step of 1 ms: at most 8 passes on the same problems."""
    springs = np.tile([1.0, 1.0, 2.0], 8) / (stiffness * 1e-3**2)
    for problem in of_robot("talos"):
        W = problem.W + np.diag(springs)
        impulses, passes, _, converged = solver(8, 8)(W, problem.c, problem.friction, 0.0 * problem.before)
        assert converged == 1.0 and passes <= 8
        assert violation(replace(problem, W=W), impulses) <= 1e-8


@pytest.mark.parametrize("name", ROBOTS)
def test_velocities_are_those_of_pinocchio(name):
    """Its ADMM (Carpentier, Le Lidec and Montaut 2024) on the same numbers. Where W is singular, impulses are not
    unique, and velocities need not be."""
    pin = pytest.importorskip("pinocchio", minversion="4.0", reason="Pinocchio 4 is not installed")
    problems = of_robot(name)
    solve, compared = solver(problems[0].contacts, CERTAIN, 1e-12), 0
    models, datas, keep = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData(), pin.buildSampleModelManipulator()
    for mu in problems[0].friction:
        point = pin.PointContactConstraintModel(keep, 1, pin.SE3.Identity())
        point.setFriction(float(mu))
        models.append(pin.ConstraintModel(point))
        datas.append(models[len(models) - 1].createData())
    for problem in problems:
        theirs, settings, result = (
            pin.ADMMConstraintSolver(problem.c.size),
            pin.ADMMSolverSettings(),
            pin.ADMMSolverResult(),
        )
        settings.max_iterations = 20000
        for kind in ("feasibility", "complementarity"):
            for relation in ("absolute", "relative"):
                setattr(settings, f"{relation}_{kind}_tol", 1e-12)
        theirs.solve(pin.DelassusOperatorDense(problem.W), problem.c, models, datas, settings, result)
        found = np.asarray(result.retrieveConstraintImpulses())
        ours, _, residual, _ = solve(*problem.arrays)
        if max(natural_map(problem, found), residual) <= 1e-12:
            compared += 1
            unique = np.linalg.matrix_rank(problem.W, 1e-9) == problem.c.size
            assert np.abs(problem.W @ (found - ours)).max() <= (1e-10 if unique else 1e-4)
    assert compared >= 10


# --- drawn problems ---------------------------------------------------------------------------------


@pytest.mark.parametrize("contacts", [1, 2, 5, 8])
@pytest.mark.parametrize("most", [8, 500])
def test_nothing_is_missing_in_silence(contacts, most):
    """Redundant, hardly moving, of any rank, some without a solution: numbers always, and a true residual."""
    solve, solved = solver(contacts, most), 0
    for problem in drawn(contacts, np.random.default_rng(contacts), 300):
        impulses, passes, residual, converged = solve(*problem.arrays)
        assert np.isfinite(impulses).all() and passes <= most
        rounding = 1e-13 * max(1.0, np.abs(problem.W).max() * np.abs(impulses).max())
        assert abs(natural_map(problem, impulses) - residual) <= rounding
        assert converged == (residual <= 1e-10)
        solved += converged
    assert solved >= 0.7 * 300


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["W", "c", "friction", "before"])
@pytest.mark.parametrize("place", [0, -1])
def test_a_number_that_is_missing_is_no_solution(which, place, value):
    problem = of_robot("solo12")[-1]  # it stands on all feet
    given = {
        "W": problem.W.copy(),
        "c": problem.c.copy(),
        "friction": problem.friction.copy(),
        "before": problem.before.copy(),
    }
    given[which].flat[place] = value
    impulses, _, residual, converged = solver(4, 8)(**given)
    changed = Problem(*given.values())
    if converged:  # it does not matter, or friction has no limit
        with np.errstate(all="ignore"):
            assert which != "W" and (which == "before" or violation(changed, impulses) <= 1e-8)
    else:
        assert not residual <= 1e-10


def test_where_nothing_can_move_nothing_acts():
    n, solve = 6, solver(2)
    for c in (np.zeros(n), np.array([0.3, 0.0, 0.0, 0.0, 0.0, 2.0])):
        impulses, _, residual, converged = solve(np.zeros((n, n)), c, np.full(2, 0.5), np.ones(n))
        assert (impulses == 0.0).all() and residual == 0.0 and converged == 1.0
    impulses, _, residual, converged = solve(
        np.zeros((n, n)), np.array([0.0, 0.0, -2.0, 0.0, 0.0, 1.0]), [0.5, 0.5], np.zeros(n)
    )
    assert (impulses == 0.0).all() and residual >= 1.0 and converged == 0.0


@pytest.mark.parametrize("ratio", [1e-3, 1e3, 1e6])
def test_a_stack_of_unlike_masses(ratio):
    """A mass of `ratio` on one of 1 kg, each pressed by its weight for 1 s at 1 m/s²."""
    W = np.kron([[1.0, -1.0], [-1.0, 1.0 + 1.0 / ratio]], np.eye(3))
    c = np.zeros(6)
    c[2] = -1.0
    impulses, passes, _, converged = solver(2, 30)(W, c, np.full(2, 0.5), np.zeros(6))
    np.testing.assert_allclose(impulses[[2, 5]], [1.0 + ratio, ratio], rtol=1e-9)
    assert converged == 1.0 and passes <= 8


@pytest.mark.parametrize("factor", [1.001, 0.999], ids=["holds", "slides"])
def test_a_block_on_four_points_at_the_edge_of_friction(factor):
    """Four redundant points: the impulses are not unique, the velocity of the block is."""
    mass, side, slope = 2.0, 0.2, 0.5
    corners = [np.array([x, y, -1.0]) * side / 2 for x in (-1, 1) for y in (-1, 1)]
    G = np.vstack([np.hstack([np.eye(3), -np.cross(np.eye(3), p)]) for p in corners])
    inverse = np.diag([*[1.0 / mass] * 3, *[6.0 / (mass * side**2)] * 3])
    falls = np.array([np.sin(slope), 0.0, -np.cos(slope), 0.0, 0.0, 0.0]) * 9.81e-3
    W, c, friction = G @ inverse @ G.T, G @ falls, np.full(4, factor * np.tan(slope))
    impulses, _, _, converged = solver(4)(W, c, friction, np.zeros(12))
    slides = max(np.sin(slope) - friction[0] * np.cos(slope), 0.0) * 9.81e-3
    assert converged == 1.0
    np.testing.assert_allclose(falls + inverse @ G.T @ impulses, [slides, 0, 0, 0, 0, 0], atol=1e-9)


def test_contacts_far_apart_do_not_change_the_others():
    """Open contacts around those of a robot: the same impulses to the bit."""
    for problem in of_robot("solo12")[::9]:
        impulses, passes, residual, _ = solver(4)(*problem.arrays)
        W, c = np.eye(24), np.tile([0.1, 0.2, 3.0], 8)
        W[:12, :12], c[:12] = problem.W, problem.c
        more = solver(8)(W, c, np.tile(problem.friction, 2), np.concatenate([problem.before, np.zeros(12)]))
        np.testing.assert_array_equal(more[0], np.concatenate([impulses, np.zeros(12)]))
        assert (more[1], more[2]) == (passes, residual)


# --- as a routine -----------------------------------------------------------------------------------


def batch(problems):
    return [np.array(column) for column in zip(*(problem.arrays for problem in problems), strict=True)]


@pytest.mark.parametrize("most", [8, 60])
def test_lanes_have_the_bits_of_single_runs(most):
    problems = [*drawn(3, np.random.default_rng(1), 5 * LANES + 3)]
    solve = solver(3, most)
    single = [solve(*problem.arrays) for problem in problems]
    for found, expected in zip(solve(*batch(problems)), zip(*single, strict=True), strict=True):
        np.testing.assert_array_equal(found, np.array(expected))
    assert len({float(passes) for _, passes, _, _ in single}) > 2


def test_lanes_of_robots_have_the_bits_of_single_runs():
    problems = of_robot("talos")
    solve = solver(8, 60)
    single = [solve(*problem.arrays) for problem in problems]
    for found, expected in zip(solve(*batch(problems)), zip(*single, strict=True), strict=True):
        np.testing.assert_array_equal(found, np.array(expected))


def test_it_can_be_called_on_a_condition_and_in_a_loop():
    """A step in flight has no solver; the warm start of one step is the result of the one before."""
    routine = ContactSolver(4, 8)

    def step(before, W, c, friction, due):
        impulses, *_ = call_when(due > 0.0, routine, (W, c, friction, before), [0.0 * before, 0.0, 0.0, 1.0])
        return impulses, 1.0

    loop = WhileLoop(Routine(step, [(12,), *routine.shapes[:3], ()], "step"), 2)
    names = ports(before=(12,), W=(12, 12), c=(12,), friction=(4,), due=())
    twice = compile(lambda *given: loop(*given)[0], names, "twice")
    problems = of_robot("solo12")[-3 * LANES :]
    due = np.arange(float(len(problems))) % 3.0
    W, c, friction, before = batch(problems)
    found = twice(before, W, c, friction, due)
    for row, problem, flag in zip(found, problems, due, strict=True):
        once = solver(4, 8)(*problem.arrays)[0]
        expected = solver(4, 8)(*problem.arrays[:3], once)[0] if flag else np.zeros(12)
        np.testing.assert_array_equal(row, expected)


def test_python_and_machine_code_agree():
    problems = [*of_robot("solo12")[::20], *regular(4, np.random.default_rng(2), 12)]
    interpreted = compile(ContactSolver(4, 8), ports(W=(12, 12), c=(12,), friction=(4,), before=(12,)), interpret=True)
    for problem in problems:
        found, passes, _, converged = solver(4, 8)(*problem.arrays)
        expected = interpreted(*problem.arrays)
        np.testing.assert_allclose(found, expected[0], rtol=1e-8, atol=1e-8)
        assert converged == expected[3] == 1.0 and abs(passes - expected[1]) <= 1.0  # a last pass may hang on rounding


def test_the_length_of_the_code_does_not_depend_on_the_number_of_contacts():
    def lines(contacts, lanes):
        return sum(routine.definition(lanes).count("\n") for routine in with_callees(ContactSolver(contacts)))

    for lanes in (1, LANES):
        found = [lines(contacts, lanes) for contacts in (4, 16, 64)]
        assert max(found) - min(found) <= 10  # large arrays are on the heap


def test_many_contacts():
    rng = np.random.default_rng(3)
    J = rng.normal(size=(192, 60))
    problem = Problem(
        J @ J.T, J @ rng.normal(size=60) - (J @ J.T) @ np.tile([0.0, 0.0, 0.1], 64), np.full(64, 0.6), np.zeros(192)
    )
    impulses, _, residual, converged = solver(64)(*problem.arrays)
    assert converged == 1.0 and abs(natural_map(problem, impulses) - residual) <= 1e-12


@pytest.mark.parametrize("given", [(0,), (2, 0), (2, 8, 0.0), (2, 8, np.nan)], ids=str)
def test_a_solver_that_could_not_solve_is_refused(given):
    with pytest.raises(ValueError, match="at least one contact and one pass and a positive tolerance"):
        ContactSolver(*given)
