"""Frequencies of beams beside their characteristic equations, and how much their points recede."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import iv, jv

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.elastic.beam import Beam, BeamSection, ModeCounts, constant
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose
from tests.multibody.elastic.beams import at, section

LENGTH, MASS, STIFFNESS = 2.0, 1.5, 30.0


def roots(equation, count, last=40.0):
    """The first roots above 0.1."""
    grid = np.linspace(0.1, last, 8001)
    values = equation(grid)
    brackets = [k for k in range(len(grid) - 1) if values[k] * values[k + 1] < 0.0]
    return np.array([brentq(equation, grid[k], grid[k + 1], xtol=1e-14) for k in brackets[:count]])


def beam(modes, ends=("clamped", "free"), **settings):
    made = section(MASS, EI=(0.5 * STIFFNESS, STIFFNESS), EA=800.0, GJ=70.0, inertia=(0.3, 0.1, 0.2))
    return Beam(LENGTH, made, modes, ends, **settings)


CHARACTERISTIC = {  # of βL, without overflow
    ("clamped", "free"): lambda x: np.cos(x) + 1.0 / np.cosh(x),
    ("clamped", "clamped"): lambda x: np.cos(x) - 1.0 / np.cosh(x),
    ("free", "free"): lambda x: np.cos(x) - 1.0 / np.cosh(x),
    ("pinned", "pinned"): np.sin,
    ("clamped", "pinned"): lambda x: np.sin(x) - np.cos(x) * np.tanh(x),
}


@pytest.mark.parametrize("ends", CHARACTERISTIC)
@pytest.mark.parametrize("kind", ["bend_y", "bend_z"])
def test_bending(ends, kind):
    EI = STIFFNESS if kind == "bend_y" else 0.5 * STIFFNESS
    expected = roots(CHARACTERISTIC[ends], 3) ** 2 / LENGTH**2 * np.sqrt(EI / MASS)
    found = beam(ModeCounts(**{kind: 3}), ends).frequencies
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_load_at_the_tip():
    """A mass and a moment of inertia: frequencies of the whole, and mode shapes that are orthogonal in it."""
    mass, inertia = 0.8, 0.3
    m, j = mass / (MASS * LENGTH), inertia / (MASS * LENGTH**3)

    def equation(x):
        """From the shape a (cosh x − cos x) + b (sinh x − sin x) with its shear force and moment at the tip."""
        c, s, ch, sh = np.cos(x), np.sin(x), np.cosh(x), np.sinh(x)
        moment_a, moment_b = ch + c - j * x**3 * (sh + s), sh + s - j * x**3 * (ch - c)
        force_a, force_b = sh - s + m * x * (ch - c), ch + c + m * x * (sh - s)
        return (moment_a * force_b - moment_b * force_a) / np.cosh(x) ** 2

    expected = roots(equation, 3) ** 2 / LENGTH**2 * np.sqrt(STIFFNESS / MASS)
    link = beam(ModeCounts(bend_y=3), tip_mass=mass, tip_inertia=inertia).link()
    load = Link("load", Inertial(mass, np.zeros(3), inertia * np.eye(3)))
    joint = Joint("weld", "fixed", "beam", "load", at(LENGTH))
    hub = Joint("hub", "fixed", "ground", "beam", Pose.identity())
    model = Model(Mechanism("m", "ground", (Link("ground"), Link("beam", elastic=link), load), (hub, joint)))
    M = np.asarray(model.mass_matrix(np.zeros(3)))
    np.testing.assert_allclose(M, np.diag(np.diag(M)), atol=1e-8)
    np.testing.assert_allclose(np.sqrt(eigh(link.stiffness, M, eigvals_only=True)), expected, rtol=1e-6)


@pytest.mark.parametrize(("rotary", "shear", "softer", "error"), [(0.2, 1e3, 0.85, 5e-4), (5e-3, 4e4, 0.998, 2e-5)])
def test_timoshenko(rotary, shear, softer, error):
    """Of a pinned beam every sine is a mode: ω⁴ ρI ρA / κGA − ω² (ρA + ρI k² + ρA EI k² / κGA) + EI k⁴ = 0."""
    k = np.arange(1, 4) * np.pi / LENGTH
    a, b, c = rotary * MASS / shear, MASS + rotary * k**2 + MASS * STIFFNESS * k**2 / shear, STIFFNESS * k**4
    expected = np.sqrt((b - np.sqrt(b * b - 4.0 * a * c)) / (2.0 * a))
    made = section(MASS, EI=(STIFFNESS, STIFFNESS), inertia=(0.1 + rotary, 0.1, rotary), shear=shear)
    found = Beam(LENGTH, made, ModeCounts(bend_y=3), ("pinned", "pinned"), shearing=True).frequencies
    np.testing.assert_allclose(found, expected, rtol=error)
    slender = roots(np.sin, 3) ** 2 / LENGTH**2 * np.sqrt(STIFFNESS / MASS)
    assert (found < softer * slender).all()


@pytest.mark.parametrize(
    ("ends", "wave_numbers"),
    [
        (("clamped", "free"), (np.arange(1, 4) - 0.5) * np.pi),
        (("clamped", "clamped"), np.arange(1, 4) * np.pi),
        (("free", "free"), np.arange(1, 4) * np.pi),
    ],
)
def test_rods(ends, wave_numbers):
    """Stretching, and twisting with the moment of inertia about the axis."""
    stretching = beam(ModeCounts(stretch=3), ends).frequencies
    np.testing.assert_allclose(stretching, wave_numbers / LENGTH * np.sqrt(800.0 / MASS), rtol=1e-6)
    twisting = beam(ModeCounts(twist=3), ends).frequencies
    np.testing.assert_allclose(twisting, wave_numbers / LENGTH * np.sqrt(70.0 / 0.3), rtol=1e-6)


def test_a_wedge():
    """A cantilever whose thickness falls to 0 at the tip (Kirchhoff 1879): J1 I2 + I1 J2 = 0 at z, ω ~ z² / 4."""
    z = roots(lambda x: (jv(1, x) * iv(2, x) + iv(1, x) * jv(2, x)) / iv(1, x), 3)
    np.testing.assert_allclose(z**2 / 4.0, [5.315, 15.207, 30.020], atol=1e-3)
    nothing, rigid = constant(0.0), constant(1.0)

    def power(value, exponent):
        return lambda x: value * (1.0 - x / LENGTH) ** exponent

    wedge = BeamSection(power(MASS, 1), (nothing,) * 3, rigid, rigid, (rigid, power(STIFFNESS, 3)), (rigid, rigid))
    found = Beam(LENGTH, wedge, ModeCounts(bend_y=3)).frequencies
    np.testing.assert_allclose(found, z**2 / (4.0 * LENGTH**2) * np.sqrt(STIFFNESS / MASS), rtol=1e-4)


@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6])
def test_a_heavy_body_at_the_tip(ratio):
    """ω² = 3 EI / L³ (m + 33/140 of the beam), to second order; the second mode has a pinned tip."""
    heavy = ratio * MASS * LENGTH
    first, second = beam(ModeCounts(bend_y=2), tip_mass=heavy).frequencies
    link = beam(ModeCounts(bend_y=1), tip_mass=heavy).link()
    loaded = link.modal.rest_mass[0, 0] + np.square(link.modal.linear).sum() + heavy
    assert link.stiffness[0, 0] / loaded == pytest.approx(
        3.0 * STIFFNESS / LENGTH**3 / (heavy + 33.0 / 140.0 * MASS * LENGTH), rel=2.0 / ratio**2 + 1e-9
    )
    assert first > 0.0
    pinned = beam(ModeCounts(bend_y=1), ("clamped", "pinned")).frequencies[0]
    assert second == pytest.approx(pinned, rel=1.0 / ratio)


def test_the_sign_of_an_antisymmetric_mode_is_not_rounding():
    """Of its deflections of equal size the first is positive."""
    made = beam(ModeCounts(bend_y=4), ("pinned", "pinned"))
    (phi, _), _ = made.displacements(np.array([0.01 * LENGTH]))
    assert (phi[0, 1::2, 1] > 0.0).all()


def test_recession_of_the_tip():
    """∫w′² of the modes of a cantilever with deflection 1 at the tip: σβ (2 + σβ) / 4L (Felgar 1950)."""
    x = roots(CHARACTERISTIC["clamped", "free"], 2)
    sigma = (np.sinh(x) - np.sin(x)) / (np.cosh(x) + np.cos(x))
    expected = sigma * x * (2.0 + sigma * x) / (4.0 * LENGTH)
    assert expected[0] * LENGTH == pytest.approx(1.1619, abs=1e-4)
    tip = beam(ModeCounts(bend_y=2, bend_z=1)).displacement(np.array([LENGTH, 0.0, 0.0])).path
    np.testing.assert_allclose(-np.diag(tip.curve[:2, :2, 0]), expected, rtol=1e-6)
    assert tip.curve[2, 2, 0] == pytest.approx(tip.curve[0, 0, 0], rel=1e-9)
    assert np.abs(tip.curve[..., 1:]).max() == np.abs(tip.curve[2, :2]).max() == 0.0
    np.testing.assert_allclose(np.abs(tip.linear[:2, 1]), 1.0, rtol=1e-12)


def test_points_recede_with_the_arc_length():
    """The axis keeps its length to second order: dx = −½ w′² along the whole beam."""
    made = beam(ModeCounts(bend_y=2, bend_z=1), ("pinned", "pinned"))
    x, eta = np.linspace(0.0, LENGTH, 4001), np.array([0.03, -0.02, 0.025])
    (phi, curve), _ = made.displacements(x)
    u = np.einsum("kmi,m->ki", phi, eta) + 0.5 * np.einsum("kmni,m,n->ki", curve, eta, eta)
    points = u + np.stack([x, 0.0 * x, 0.0 * x], axis=-1)
    lengths = np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))
    np.testing.assert_allclose(lengths, x[1:], rtol=2e-5)
    assert np.linalg.norm(u[-1]) > 2e-3


def test_without_stiffening_no_point_recedes():
    link = beam(ModeCounts(bend_y=2), stiffening=False).link()
    assert not link.displacement(np.array([LENGTH, 0.0, 0.0])).path.curve.any()
    assert not link.modal.curve.any() and not link.hardening.any()


def test_stiffness_and_damping_of_the_modes():
    made = beam(ModeCounts(2, 1, 1, 1), damping_ratio=0.03)
    link = made.link()
    hub = Joint("hub", "fixed", "ground", "beam", Pose.identity())
    model = Model(Mechanism("m", "ground", (Link("ground"), Link("beam", elastic=link)), (hub,)))
    masses = np.asarray(model.equations.mass_matrix(np.zeros(5)), dtype=float)
    mass = np.diag(masses)
    np.testing.assert_allclose(masses, np.diag(mass), atol=1e-9 * mass.max())
    np.testing.assert_allclose(np.diag(link.stiffness), made.frequencies**2 * mass, rtol=1e-12)
    np.testing.assert_allclose(link.damping, np.diag(2.0 * 0.03 * made.frequencies * mass), rtol=1e-12)
    assert [name for name, _ in link.modes] == ["bend_y_1", "bend_y_2", "bend_z_1", "twist_1", "stretch_1"]
    assert [unit for _, unit in link.modes] == ["m", "m", "m", "rad", "m"]


def test_hardening():
    """½ ∫ EI (w′ w″)² of one mode, and of two by the energy of their sum; ∂energy/∂η are the forces."""
    made = beam(ModeCounts(bend_y=2))
    h, x = made.link().hardening, made._mesh.gauss_points.ravel()
    _, line, vectors = made._kinds[0]
    shapes, eta = made._mesh.evaluate(line, vectors, x), np.array([0.3, -0.2])
    bend = (shapes.slope @ eta) * (shapes.curvature @ eta)
    energy = 0.5 * STIFFNESS * made._mesh.gauss_weights.ravel() @ bend**2
    assert 0.25 * np.einsum("klmn,k,l,m,n", h, *[eta] * 4) == pytest.approx(energy, rel=1e-12)
    for axes in ((1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)):
        np.testing.assert_allclose(h.transpose(axes), h, rtol=1e-12)
