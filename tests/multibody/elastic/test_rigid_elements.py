"""Beams as chains of rigid elements: they approach what the modes of the same beam give."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import eigh

from cosim.core.errors import InputError
from cosim.mechanics.multibody.elastic.beam import Beam, ModeCounts
from cosim.mechanics.multibody.elastic.rigid_elements import rigid_elements
from cosim.mechanics.multibody.mechanism import Frame, Inertial, Joint, Link, Mechanism, Pose
from cosim.mechanics.multibody.model import Model
from tests.multibody.elastic.beams import section

ROOTS = np.array([1.875104069, 4.694091133, 7.854757438])
LINE = section(mass=0.8, inertia=(0.0, 0.0, 0.0), EI=(20.0, 30.0))
BEAM = Beam(1.5, LINE, ModeCounts(bend_y=3))


def model_of(elastic, load=0.0):
    links = (Link("base"), Link("rod", elastic=elastic), Link("load", Inertial(load, np.zeros(3), np.zeros((3, 3)))))
    tip = Pose(np.eye(3), np.array([1.5, 0.0, 0.0]))
    joints = Joint("root", "fixed", "base", "rod", Pose.identity()), Joint("end", "fixed", "rod", "load", tip)
    frames = (Frame("tip", "rod", tip),)
    return Model(Mechanism("cantilever", "base", links, joints, frames=frames), gravity=(0.0, -9.81, 0.0))


def frequencies(model):
    """Of small motions about the undeformed shape [rad/s]."""
    zero = np.zeros(model.nv)
    mass = np.asarray(model.mass_matrix(zero))
    stiffness = np.array(
        [[joint.stiffness * (j == k) for k in range(model.nv)] for j, joint in enumerate(model.joints)]
    )
    return np.sqrt(eigh(stiffness, mass, eigvals_only=True))


def test_frequencies_approach_those_of_the_beam_with_the_square_of_the_elements():
    exact = (ROOTS / 1.5) ** 2 * np.sqrt(30.0 / 0.8)
    errors = [np.abs(frequencies(model_of(rigid_elements(BEAM, n)))[:3] / exact - 1.0) for n in (8, 16, 32)]
    assert errors[-1].max() < 2e-3
    for coarse, fine in pairwise(errors):
        assert fine == pytest.approx(coarse / 4.0, rel=0.15)


def test_the_chain_has_the_mass_of_the_beam():
    found = rigid_elements(BEAM, 7)
    link = BEAM.link()
    assert found.mass == pytest.approx(link.mass, rel=1e-12)
    moment = sum(p.moment + p.mass * np.array([p.start, 0.0, 0.0]) for p in found.pieces)
    assert moment == pytest.approx(link.moment, rel=1e-12)


def test_a_load_bends_both_alike():
    """Deflection of the tip in equilibrium, by Newton's method: elements beside modes."""

    def deflection(model):
        q = np.zeros(model.nv)
        for _ in range(20):
            effort = model.inverse_dynamics(q, 0.0 * q, 0.0 * q)
            slope = np.array([
                (model.inverse_dynamics(q + d, 0.0 * q, 0.0 * q) - effort) / 1e-6
                for d in 1e-6 * np.eye(model.nv)
            ]).T  # fmt: skip
            q = q - np.linalg.solve(slope, effort)
        return model.frame_pose(q, "tip")[1, 3]

    with_modes = deflection(model_of(BEAM.link(), load=0.3))
    assert with_modes == pytest.approx(-(0.3 * 1.5**3 / 3.0 + 0.8 * 1.5**4 / 8.0) * 9.81 / 30.0, rel=0.05)
    assert deflection(model_of(rigid_elements(BEAM, 32), load=0.3)) == pytest.approx(with_modes, rel=5e-3)


def test_the_first_mode_has_the_damping_ratio():
    beam = Beam(1.5, LINE, ModeCounts(bend_y=1), damping_ratio=0.05)
    model = model_of(rigid_elements(beam, 24))
    zero = np.zeros(model.nv)
    stiffness, damping = (
        np.diag([getattr(joint, what) for joint in model.joints]) for what in ("stiffness", "damping")
    )
    squares, shapes = eigh(stiffness, np.asarray(model.mass_matrix(zero)))
    first = shapes[:, 0]
    assert first @ damping @ first / (2.0 * np.sqrt(squares[0])) == pytest.approx(0.05, rel=5e-3)


def test_where_nothing_can_be_attached():
    found = rigid_elements(BEAM, 3)
    assert [found.piece_at(np.array([x, 0.0, 0.0])) for x in (0.0, 0.3, 1.0, 1.5)] == [0, 1, 2, 3]
    with pytest.raises(InputError) as error:
        found.piece_at(np.array([1.6, 0.0, 0.0]))
    assert error.value.what == "x = 1.6 m is beyond the beam, which ends at 1.5 m; move it or lengthen the beam"
