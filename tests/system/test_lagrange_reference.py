"""The Lagrange reference of the tests is itself correct."""

import casadi as ca
import numpy as np
import pytest
from scipy.special import ellipk

from tests.kit.lagrange import Lagrange


def test_the_reference_has_the_period_of_a_pendulum():
    length, swing = 0.7, 2.0
    pendulum = Lagrange(1, lambda q, v, t: (0.5 * (length * v[0]) ** 2, -9.81 * length * ca.cos(q[0])))
    period = 4.0 * np.sqrt(length / 9.81) * ellipk(np.sin(swing / 2) ** 2)
    end = pendulum.solve([0.0, period], [swing], [0.0]).y[:, -1]
    assert end == pytest.approx([swing, 0.0], abs=1e-8)
    mass = np.array([[length**2]])
    assert pendulum.mass([swing]) == pytest.approx(mass)
    assert pendulum.struck([swing], np.array([3.0]), [0])[1] == pytest.approx(0.5 * length**2 * 9.0)
