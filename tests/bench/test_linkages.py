"""Linkages of the bench are closed, their peers have the same ones, and rows with loops agree with them."""

import math

import mujoco
import numpy as np
import pytest

from benchmarks import linkages, peers_loops
from benchmarks.rows import measure_case
from tests.bench.named_rows import TINY, named


@pytest.mark.parametrize(
    ("make", "mobility"),
    [
        (linkages.four_bar, 1),
        (linkages.andrews, 1),
        (linkages.two_arms, 6),
        (linkages.standing, 26),
        (lambda: linkages.parallelograms(linkages.side_by_side(3)), 1),
        (lambda: linkages.parallelograms(linkages.ladder(3)), 3),
    ],
    ids=["four-bar", "andrews", "two arms", "standing", "side by side", "ladder"],
)
def test_linkages_are_closed_and_move(make, mobility):
    """What is left of the constraints is rounding, and they leave as many freedoms as there are."""
    linkage = make()
    residual, rate = linkage.model.equations.constraint_violation(linkage.q, linkage.v)
    assert np.abs(residual).max() < 1e-10
    assert np.abs(rate).max() < 1e-9
    assert np.abs(linkage.v).max() > 0.1
    G = linkage.model.equations.constraint_jacobian(linkage.q)
    assert linkage.model.nv - np.linalg.matrix_rank(G, 1e-9) == mobility


def test_pinocchio_has_the_dofs_of_the_linkage_in_its_order():
    pinocchio = peers_loops.ClosedPinocchio(linkages.standing())
    names, model = list(pinocchio.model.names)[1:], pinocchio.linkage.model
    assert tuple(names) == model.joint_names
    assert pinocchio.model.nv == model.nv
    assert [contact.residualSize() for contact in pinocchio.contacts] == [6, 6]


def rivals_of(monkeypatch, *rivals):
    """Ways that differ by so much and take so long, (difference, seconds) each; what `fastest` says of them."""
    monkeypatch.setattr(peers_loops, "METHODS", range(len(rivals)))
    monkeypatch.setattr(peers_loops.paired_timing, "shortest_time", lambda block, effort: rivals[block][1])
    pinocchio = peers_loops.ClosedPinocchio(linkages.four_bar())
    monkeypatch.setattr(
        pinocchio, "rival", lambda method, ours: peers_loops.PeerMethod(method, rivals[method][0], method)
    )
    chosen, difference = pinocchio.fastest(None, TINY)
    return chosen.method, difference


def test_the_fastest_of_the_exact_ways_is_timed(monkeypatch):
    assert rivals_of(monkeypatch, (math.nan, 1.0), (1e-15, 4.0), (9e-9, 3.0), (2e-8, 2.0)) == (2, 1e-15)


def test_without_an_exact_method_the_fastest_is_timed_and_the_difference_reported(monkeypatch):
    assert rivals_of(monkeypatch, (1e-3, 2.0), (math.nan, 5.0), (1e-2, 1.0)) == (2, 1e-3)


def test_a_mode_describes_its_settings():
    assert str(peers_loops.PinocchioMethod("lcaba", 1e-6, 2)) == "lcaba (μ = 1e-06, 2 it.)"


@pytest.mark.parametrize("make", [linkages.four_bar, linkages.andrews])
def test_mujoco_has_the_same_linkage_in_the_same_state(make):
    linkage = make()
    model, data = peers_loops.mujoco_linkage(linkage)
    mujoco.mj_forward(model, data)
    order = [model.joint(name).dofadr[0] for name in linkage.model.dof_names]
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    np.testing.assert_allclose(mass[np.ix_(order, order)], linkage.model.mass_matrix(linkage.q), rtol=1e-8)
    loops = len(linkage.model.mechanism.loops)
    assert model.neq == loops
    for k in range(loops):
        np.testing.assert_allclose(data.site(f"a{k}").xpos, data.site(f"b{k}").xpos, atol=1e-10)
    free = linkage.model.equations.inverse_dynamics(linkage.q, linkage.v, np.zeros(model.nv))
    np.testing.assert_allclose(data.qfrc_bias[order], free, atol=1e-12)


@pytest.mark.parametrize("name", ["loops four_bar mujoco", "loops andrews mujoco"])
def test_rows_for_information_have_no_target(name):
    row = measure_case(named(name), TINY)
    assert (row.agreement, row.met, row.runs) == (None, None, TINY.pairs)
    assert row.ratio is not None and row.ratio > 0.0
