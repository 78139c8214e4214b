"""Mechanisms that start flat or folded, where several motions cross: they follow the one that the velocities name."""

import numpy as np
import pytest

from cosim.core.errors import InputError
from cosim.rig.rig import Rig
from tests.kit.refusals import raised

BAR = {"mass": 1.0, "com": [0.1, 0.0, 0.0], "inertia": [0.0, 0.0, 0.02]}
RADIUS, GROUND = 0.2, 0.5


def at(x):
    return {"xyz": [x, 0.0, 0.0]}


def rig(bodies, loop, start, elimination="direct", gravity=0.0):
    """start: joint -> its position and velocity, None where it is not given."""
    initial = {
        name: {"position": position} | ({} if velocity is None else {"velocity": velocity})
        for name, (position, velocity) in start.items()
    }
    found = {"gravity": [0, -gravity, 0], "bodies": bodies, "loops": [{"name": "pin", **loop}]}
    found["loop_closure"] = {"elimination": elimination}
    joints = {name: {"initial": values} for name, values in initial.items()}
    return {"mechanism": found, "joints": joints, "schedule": {"step": "0.5 ms", "duration": "0.5 s"}}


def parallelogram(a, c, b, **more):
    """Flat; a, c, b: velocities of both cranks and of the coupler between them."""
    bodies = [{"name": "a", **BAR}, {"name": "c", "origin": at(RADIUS), **BAR}]
    bodies.append({"name": "b", "parent": "base", "origin": at(GROUND), **BAR})
    loop = {"parent": "b", "child": "c", "origin": at(RADIUS), "child_origin": at(GROUND)}
    return rig(bodies, loop, {"a": (0.0, a), "c": (0.0, c), "b": (0.0, b)}, **more)


def slider_crank(crank, rod, piston, **more):
    """Crank and rod of one length, folded: the piston is above the shaft."""
    bodies = [{"name": "crank", **BAR}, {"name": "rod", "origin": at(RADIUS), **BAR}]
    bodies.append({"name": "piston", "parent": "base", "type": "prismatic", "axis": [1, 0, 0], "mass": 1.0})
    loop = {"parent": "piston", "child": "rod", "child_origin": at(RADIUS)}
    return rig(bodies, loop, {"crank": (np.pi / 2, crank), "rod": (np.pi, rod), "piston": (0.0, piston)}, **more)


# the motion of a flat antiparallelogram: r (b + a) = r² / d (b − a) with b − a = d / r ψ, from the loop to second order
ACROSS = -(GROUND + RADIUS) / (GROUND - RADIUS)
CASES = {
    "cranks turn alike": (parallelogram, (3.0, None, None), (3.0, -3.0, 3.0)),
    "given cranks turn alike": (parallelogram, (3.0, None, 3.0), (3.0, -3.0, 3.0)),
    "cranks turn against each other": (parallelogram, (3.0, None, 3.0 * ACROSS), (3.0, -7.0, -7.0)),
    "rod turns with the crank": (slider_crank, (3.0, None, None), (3.0, 0.0, 0.0)),
    "piston is pushed": (slider_crank, (3.0, None, -6.0 * RADIUS), (3.0, -6.0, -6.0 * RADIUS)),
}


@pytest.mark.parametrize("elimination", ["direct", "nested"])
@pytest.mark.parametrize("case", CASES)
def test_the_start_is_on_the_motion_that_velocities_name(case, elimination):
    make, given, expected = CASES[case]
    start = Rig.from_dict(make(*given, elimination=elimination)).plant.start
    np.testing.assert_allclose(start.v, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("gravity", [0.0, 9.81])
def test_runs_stay_on_their_motion(gravity):
    alike = Rig.from_dict(parallelogram(3.0, None, None, gravity=gravity)).run()
    across = Rig.from_dict(parallelogram(3.0, None, 3.0 * ACROSS, gravity=gravity)).run()
    assert alike is not None and across is not None
    np.testing.assert_allclose(alike["b/position"], alike["a/position"], atol=1e-9)
    a, b = across["a/position"], across["b/position"]
    sines = np.hypot(GROUND + RADIUS * (np.cos(b) - np.cos(a)), RADIUS * (np.sin(b) - np.sin(a)))
    np.testing.assert_allclose(sines, GROUND, atol=1e-9)
    assert np.abs(b - a).max() > 1.0
    # γ of the crossing motions is not determined in the very first stage: an error of the order of the step squared
    bound = 1e-9 if not gravity else 1e-4
    assert max(run.summary["energy"]["residual_relative"] for run in (alike, across)) < bound


@pytest.mark.parametrize("given", [(None, None, None), (3.0, None, 1.0)], ids=["at rest", "two motions"])
def test_starts_that_are_on_no_motion(given, said):
    said(raised(InputError, Rig.from_dict, parallelogram(*given)).what)
