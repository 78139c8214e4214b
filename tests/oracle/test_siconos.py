"""The solver of contacts beside Siconos (Acary and Brémond), on problems of robots that land."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.legged_robots import SOLO, TALOS
from cosim import load_rig
from cosim.mechanics.multibody.contact_dynamics import ContactDynamics, GivenMotionAndEffort, MotionState
from tests.multibody.contact.contact_problems import Problem, compiled, natural_map

PYTHON, SOLVER = "/usr/bin/python3", Path(__file__).with_name("siconos_solver.py")
METHODS = "NSN_AC", "NSGS"
STEP, SPRINGS = 1e-3, 1e7  # s, N/m


@pytest.fixture(scope="module")
def siconos(tmp_path_factory):
    """Solves problems: method -> impulses of each."""
    asked = [PYTHON, "-c", "import siconos.numerics"]
    if not Path(PYTHON).is_file() or subprocess.run(asked, capture_output=True).returncode:
        pytest.skip("Siconos is not installed: apt-get install python3-siconos")
    folder = tmp_path_factory.mktemp("siconos")

    def solve(problems):
        given = {"count": len(problems)}
        for k, problem in enumerate(problems):
            given |= {f"W{k}": problem.W, f"c{k}": problem.c, f"friction{k}": problem.friction}
        np.savez(folder / "problems.npz", **given)
        files = folder / "problems.npz", folder / "impulses.npz"
        subprocess.run([PYTHON, SOLVER, *files], check=True, capture_output=True, timeout=120)
        with np.load(folder / "impulses.npz") as found:
            return {method: [found[f"{method}{k}"] for k in range(len(problems))] for method in METHODS}

    return solve


def landing(folder, robot, count, springs):
    """Problems of a run after it has touched the ground: of the next step, at the states that it recorded."""
    rig = load_rig(robot.rig(folder, 0.05, STEP, 0.5, "1e7" if robot is TALOS else "rigid"))
    model, found = rig.plant.model, rig.run()
    e, contacts = model.equations, model.equations.constraints.contacts
    pressed = np.sum([found[f"foot_{k}/normal_force"] for k in range(len(robot.feet))], axis=0) > 0.0
    for tick in np.flatnonzero(pressed)[:: np.count_nonzero(pressed) // count][:count]:
        q = np.array([found[f"{name}/position"][tick] for name in model.coordinate_names])
        v = np.array([found[f"{name}/velocity"][tick] for name in model.dof_names])
        driven = [f"{name}/effort" for name in model.dof_names]
        tau = np.array([found[name][tick] if name in found.signals else 0.0 for name in driven])
        nothing = np.zeros(model.nv)
        given = GivenMotionAndEffort(nothing, tau, np.zeros(model.nv, dtype=bool))
        dynamics = ContactDynamics.of(e, MotionState(0.0, q, v), given)
        placed = e.placements(e.q_map.positions(q), e.v_map.expand(v), 0.0)[1]
        c = np.asarray(contacts.rates(placed, dynamics.points), float) + STEP * np.asarray(dynamics.free_change, float)
        c[2::3] += [2.0 * max(float(point.gap), 0.0) / STEP for point in dynamics.points]
        W = np.asarray(dynamics.inertia, float)
        if springs:
            W = W + np.diag(np.tile([1.0, 1.0, 2.0], len(W) // 3)) / (springs * STEP**2)
        yield Problem(W, c, np.array([contact.law.sliding for contact in contacts.of_points]), np.zeros(len(c)))


@pytest.mark.filterwarnings("ignore:.*link 'base'. the inertia is physically impossible")
@pytest.mark.parametrize(
    ("robot", "springs"), [(SOLO, None), (TALOS, None), (TALOS, SPRINGS)], ids=["solo12", "talos", "talos on springs"]
)
def test_velocities_are_those_of_siconos(siconos, tmp_path, robot, springs):
    """Of rigid feet with more points than their forces need, impulses differ, and one of its methods often stalls."""
    problems = list(landing(tmp_path, robot, 10, springs))
    theirs = siconos(problems)
    solve, compared = compiled(len(problems[0].friction), 5000, 1e-13), 0
    for k, problem in enumerate(problems):
        ours, _, residual, _ = solve(*problem.arrays)
        assert residual <= 1e-12 and abs(natural_map(problem, ours) - residual) <= 1e-14
        known = [found[k] for found in theirs.values() if natural_map(problem, found[k]) <= 1e-12]
        for impulses in known:
            assert np.abs(problem.W @ (impulses - ours)).max() <= 1e-11
        compared += bool(known)
    assert compared >= 9
