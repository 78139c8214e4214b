"""The regressor of the inverse dynamics: against differences of masses, and against Pinocchio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.errors import InputError
from cosim.multibody import Model
from cosim.multibody.mechanism import Inertial
from tests.oracle.conftest import ROBOTS

OF_PINOCCHIO = [0, 1, 2, 3, 4, 6, 9, 5, 7, 8]  # its order is xx, xy, yy, xz, yz, zz
UR5 = Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf"


def motion(model: Model, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (3, model.nv))


@pytest.mark.parametrize("link", ["forearm_link", "tool0"])
def test_the_effort_of_a_load_is_linear_in_its_parameters(link: str) -> None:
    """Against a mechanism with the load; the frame of a tool is fixed to its link, and turned."""
    model = Model.from_urdf(UR5)
    mass, com, about_com = 2.5, np.array([0.1, -0.2, 0.3]), np.diag([0.2, 0.3, 0.25])
    about_com[0, 1] = about_com[1, 0] = 0.04
    about = about_com + mass * (com @ com * np.eye(3) - np.outer(com, com))
    parameters = np.array([mass, *(mass * com), *(about[k] for k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))])
    links = [
        replace(one, inertial=_joined(one.inertial, Inertial(mass, com, about_com))) if one.name == link else one
        for one in model.mechanism.links
    ]
    loaded = Model(replace(model.mechanism, links=tuple(links)))
    q, v, a = motion(model)
    expected = loaded.inverse_dynamics(q, v, a) - model.inverse_dynamics(q, v, a)
    found = model.link_regressor(q, v, a, link) @ parameters
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


def _joined(own: Inertial | None, load: Inertial) -> Inertial:
    if own is None:
        return load
    mass = own.mass + load.mass
    com = (own.mass * own.com + load.mass * load.com) / mass
    parts = ((own, own.com - com), (load, load.com - com))
    return Inertial(
        mass,
        com,
        sum(p.inertia + p.mass * (r @ r * np.eye(3) - np.outer(r, r)) for p, r in parts),  # type: ignore
    )


def test_it_is_the_regressor_of_pinocchio() -> None:
    import pinocchio

    path = Path(ROBOTS) / "ur_description" / "urdf" / "ur5_robot.urdf"
    model, peer = Model.from_urdf(path), pinocchio.buildModelFromUrdf(str(path))
    assert model.joint_names == tuple(list(peer.names)[1:])
    q, v, a = motion(model, 1)
    expected = pinocchio.computeJointTorqueRegressor(peer, peer.createData(), q, v, a)
    for k, joint in enumerate(model.joints):
        found = model.link_regressor(q, v, a, joint.child)
        np.testing.assert_allclose(
            found, expected[:, 10 * k : 10 * k + 10][:, OF_PINOCCHIO], atol=1e-12 * np.abs(expected).max()
        )


def test_links_that_do_not_move_or_exist_are_refused() -> None:
    model = Model.from_urdf(UR5)
    q, v, a = motion(model)
    with pytest.raises(InputError, match=r"^link 'base_link' does not move$"):
        model.link_regressor(q, v, a, "base_link")
    with pytest.raises(InputError, match=r"^link 'tool1' does not exist; did you mean 'tool0'"):
        model.link_regressor(q, v, a, "tool1")
