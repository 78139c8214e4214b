"""The flexible slider–crank of Simeon (IVP test set, problem `crank`): a rod with two sine modes across and two
quadratic shapes along it, behind a crank that turns at 150 rad/s."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.mechanics.multibody.assembly import find_redundant
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, LoopJoint, Mechanism
from cosim.mechanics.multibody.model import Model
from tests.multibody.elastic_files.test_table import rod
from tests.multibody.random_frames import at

CRANK, ROD, SLIDER = 0.36, 0.151104, 0.075552  # kg
L1, L2, J1, J2 = 0.15, 0.30, 0.002727, 0.0045339259
SIDE, DENSITY = 0.008, 7870.0
START = {
    "slider": (0.450016933, -0.268938672e-5),
    "rod.q1": (0.0, 0.444896105),
    "rod.q2": (0.0, 0.463434311e-2),
    "rod.q3": (0.103339863e-4, -0.178591076e-5),
    "rod.q4": (0.169327969e-4, -0.268938672e-5),
    "crank": (0.0, 150.0),
    "rod": (0.0, -74.9957670 - 150.0),
}
# at 0.1 s: angle of the rod, slider, q1 to q4
PUBLISHED = [-0.3311734988256260, 0.1697373328427860, 0.1893192899613509e-3, 0.2375751249879174e-4,
             -0.5323896770569702e-5, -0.8363313279112129e-5]  # fmt: skip


def rod_of_the_problem():
    further = np.zeros((4, 4))  # the problem has the mass matrix of the shapes along the rod without its factor 1/15
    further[2:, 2:] = DENSITY * SIDE**2 * L2 * np.array([[8.0, 1.0], [1.0, 2.0]]) * (1 - 1 / 15)
    return rod(further_mass=further).link()


def about_z(moment):
    return np.diag([0.0, 0.0, moment])


def test_the_published_solution():
    links = (
        Link("base"),
        Link("crank", Inertial(CRANK, np.array([L1 / 2, 0.0, 0.0]), about_z(J1 - CRANK * L1**2 / 4))),
        Link("rod", Inertial(0.0, np.zeros(3), about_z(J2 - ROD * L2**2 / 3)), elastic=rod_of_the_problem()),
        Link("slider", Inertial(SLIDER, np.zeros(3), np.zeros((3, 3)))),
    )
    joints = (
        Joint("crank", "revolute", "base", "crank", at()),
        Joint("rod", "revolute", "crank", "rod", at(L1)),
        Joint("slider", "prismatic", "base", "slider", at(), np.array([1.0, 0.0, 0.0])),
    )
    loops = (LoopJoint(Joint("pin", "revolute", "rod", "slider", at(L2)), at()),)
    model = Model(Mechanism("crank", "base", links, joints, loops=loops), gravity=(0.0, 0.0, 0.0))
    q, v = np.array([START[name] for name in model.dof_names]).T
    model = model.without(find_redundant(model, q, np.zeros(model.nv, dtype=bool)))
    n, prescribed = model.nv, np.array([name == "crank" for name in model.dof_names])

    dynamics, none, out = model.compiled("hybrid_dynamics").native, np.zeros(n), (np.empty(n), np.empty(n))

    def rates(t, x):
        dynamics(np.ascontiguousarray(x[:n]), np.ascontiguousarray(x[n:]), none, none, prescribed, out=out)
        return np.concatenate([x[n:], out[0]])

    end = solve_ivp(rates, (0.0, 0.1), np.concatenate([q, v]), method="DOP853", rtol=1e-7, atol=1e-12).y[:n, -1]
    found = dict(zip(model.dof_names, end, strict=True))
    angle = (found["crank"] + found["rod"] + np.pi) % (2.0 * np.pi) - np.pi
    assert [angle, found["slider"]] == pytest.approx(PUBLISHED[:2], abs=1e-8)
    assert [found[f"rod.q{k}"] for k in (1, 2, 3, 4)] == pytest.approx(PUBLISHED[2:], abs=5e-9)
