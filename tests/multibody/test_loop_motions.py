"""The motions that closed loops leave, against finite differences of closed configurations and counts by hand."""

from pathlib import Path

import numpy as np
import pytest

from cosim.mechanics.multibody.assembly import closed_within_tolerance, find_consistent_state
from cosim.mechanics.multibody.description.robot_formats import format_of, read_robot
from cosim.mechanics.multibody.loop_motions import coupled_loops, depths, nearest_to_base
from cosim.mechanics.multibody.model import Model
from tests.kit.loop_robots import LOOP_ROBOTS, mjcf_slider

WITH_LOOPS = [kind for kind in LOOP_ROBOTS if kind != "URDF with mimic"]
LEAST = 0.1


def closed(text, file, folder):
    """(model, coordinates at which its loops are closed)"""
    if file.endswith(".usda"):
        pytest.importorskip("pxr", reason="the package usd-core is not installed")
    path = Path(folder) / file
    path.write_text(text)
    model = Model(read_robot(path, format_of(path)).mechanism)
    none = np.zeros(model.nv, dtype=bool)
    model, q = closed_within_tolerance(model, model.neutral(), none)
    state = find_consistent_state(model, q, np.zeros(model.nv), ~none, none)
    return model.without(state.redundant, state.inexact), state.q


def loops_of(kind, folder):
    model, q = closed(LOOP_ROBOTS[kind].text, LOOP_ROBOTS[kind].file, folder)
    return model, q, coupled_loops(model, q, np.ones(model.nv, dtype=bool))


# mobility by Grübler's count: in the plane 3 n − 2 f for n bodies and f hinges or slides in loops; a gear takes 1; the
# delta in space: 3 arms, 3 balls and 3 slides less 3 · 3 rows of its points
COUNTED = {
    "SDF slider-crank": 3 * 3 - 2 * 4,
    "SDF four-bar": 3 * 3 - 2 * 4,
    "MJCF four-bar by connect": 3 * 3 - 2 * 4,
    "MJCF weld": 3 * 4 - 2 * 4 - 3,
    "MJCF joint equality": 2 - 1,
    "USD four-bar": 3 * 3 - 2 * 4,
    "delta": 3 + 3 * 3 + 3 - 3 * 3,
    "parallel gripper": 3 * 6 - 2 * 8 - 1,
}


@pytest.mark.parametrize("kind", WITH_LOOPS)
def test_as_many_motions_as_counted_by_hand(kind, tmp_path):
    _, _, (loops,) = loops_of(kind, tmp_path)
    assert loops.independent == COUNTED[kind]


@pytest.mark.parametrize("kind", WITH_LOOPS)
def test_dofs_follow_the_driven_ones_as_in_a_small_motion(kind, tmp_path):
    """Against the configurations in which the loops close a little to both sides."""
    model, q, (loops,) = loops_of(kind, tmp_path)
    actuated = sorted(loops.chosen(nearest_to_base(model, loops), LEAST))
    assert len(actuated) == loops.independent and loops.left(actuated) == []
    rates, kept, small = loops.following(actuated), np.isin(np.arange(model.nv), actuated), 1e-5
    for column, dof in enumerate(actuated):
        assert rates[np.searchsorted(loops.dofs, dof), column] == pytest.approx(1.0)
        sides = []
        for sign in (1.0, -1.0):
            v = np.zeros(model.nv)
            v[loops.dofs] = sign * small * rates[:, column]
            guess = np.asarray(model.equations.integrate(q, v))
            place = closed_within_tolerance(model, guess, kept)[1]
            sides.append(np.asarray(model.equations.chart(place), dtype=float))
        found = (sides[0] - sides[1])[loops.dofs] / (2.0 * small)
        assert found == pytest.approx(rates[:, column], abs=1e-4)


@pytest.mark.parametrize("kind", WITH_LOOPS)
def test_a_driven_dof_takes_its_motion(kind, tmp_path):
    """Each further actuated dof leaves one motion less, until none is left."""
    model, _, (loops,) = loops_of(kind, tmp_path)
    actuated = loops.chosen(nearest_to_base(model, loops), LEAST)
    for n in range(len(actuated)):
        held = ~np.isin(np.arange(model.nv), actuated[:n])
        left = sum(each.independent for each in coupled_loops(model, model.neutral(), held))
        assert left == loops.independent - n
        assert set(actuated[n:]) <= set(loops.left(actuated[:n]))


def test_no_dof_drives_at_its_dead_centre(tmp_path):
    model, q = closed(mjcf_slider(0.0, "turn"), "a.xml", tmp_path)
    (loops,) = coupled_loops(model, q, np.ones(3, dtype=bool))
    turn, rod, guide = (model.dof_index(name) for name in ("turn", "big_end", "guide"))
    assert loops.chosen([guide], 1e-6) == [] and loops.independent_among([guide]) == 0
    assert loops.chosen([guide, turn, rod], LEAST) == [turn]
    # of a crank of 0.1 m and a rod of 0.3 m
    assert loops.following([turn])[:, 0] == pytest.approx([1.0, -0.4 / 0.3, 0.0], abs=1e-12)


def test_a_dof_outside_of_the_loops_and_one_that_is_held(tmp_path):
    model, q, (loops,) = loops_of("parallel gripper", tmp_path)
    wrist = model.dof_index("wrist")
    assert wrist not in loops.dofs
    assert depths(model)[[wrist, model.dof_index("left_drive"), model.dof_index("left_tip")]].tolist() == [1, 2, 3]
    movable = np.arange(model.nv) == wrist
    assert coupled_loops(model, q, movable) == []
