"""A straight beam as an elastic link: its frame at one end, x along it, y and z the principal axes of its sections.

Euler–Bernoulli: sections stay normal to the beam and have no inertia against bending. Timoshenko: they shear and have.

Its modes are of finite elements for bending, stretching and twisting. All have two unknowns per node, a deflection and
an angle, and cubic shape functions by Friedman and Kosmatka (An improved two-node Timoshenko beam finite element,
1993), which are exact for constant sections under end loads. Without shear they are Hermite's, which also serve rods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array, param, params
from cosim.mechanics.multibody.elastic.link import Displacement, ElasticLink, Remedies, pieces_along
from cosim.mechanics.multibody.elastic.mass_points import MassPoints, offset, solids
from cosim.mechanics.multibody.elastic.modal_link import without_rounding
from cosim.mechanics.multibody.elastic_bodies import ModalMass, PointCurve

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(4)
GAUSS = 0.5 * (_POINTS + 1.0), 0.5 * _WEIGHTS  # on [0, 1], exact for the mass of cubic shapes
ELEMENTS = 64  # of a beam: the third frequency of a beam is then right to 1e-6, whatever its ends
ROUNDING = 1e-12  # of integrals by Gauss's formula, relative to the largest number of an array
EQUAL_DEFLECTIONS = 1e-6  # relative difference of deflections that are the same
REMEDIES = Remedies(
    held="give the beam more modes of this kind than directions are held, or other ends",
    along="give the beam a mode of stretch and a tip that is not clamped in its ends, or stiffening: false",
)

AlongBeam = Callable[[Array], Array]  # of x [m]


class BeamSection(NamedTuple):
    """Of a beam, as functions of x: per length mass [kg/m] and moments of inertia about x, y, z [kg m]; stiffnesses EA
    [N], GJ, EI about y and z [N m²], κGA along y and z [N]."""

    mass: AlongBeam
    inertia: tuple[AlongBeam, AlongBeam, AlongBeam]
    stretching: AlongBeam
    twisting: AlongBeam
    bending: tuple[AlongBeam, AlongBeam]  # about y, about z
    shear: tuple[AlongBeam, AlongBeam]  # along y, along z


MOST_MODES = 20


@params
class ModeCounts:
    """Number of modes of each kind: bending along y and along z, twist about x, stretch along x."""

    bend_y: int = param(min=0, max=MOST_MODES, default=0)
    bend_z: int = param(min=0, max=MOST_MODES, default=0)
    twist: int = param(min=0, max=MOST_MODES, default=0)
    stretch: int = param(min=0, max=MOST_MODES, default=0)

    def __post_init__(self) -> None:
        if not any(asdict(self).values()):
            raise ValueError("no modes are given: the link is rigid; give a number of bend_y, bend_z, twist or stretch")


class BeamEnd(NamedTuple):
    """What an end of the beam cannot do in a mode: whether it is held, and its angle is."""

    held: bool
    clamped: bool


ENDS = {"clamped": BeamEnd(True, True), "pinned": BeamEnd(True, False), "free": BeamEnd(False, False)}


@dataclass(frozen=True)
class Beam:
    """A straight elastic beam: its dimensions, its ends and the modes that describe how it deforms.

    ends: names of `ENDS`, of its root and its tip. tip_mass [kg], tip_inertia [kg m²]: of a body at the tip with which
    the mode shapes are found; it is no part of the beam. shearing: a Timoshenko beam. stiffening: the tip recedes while
    the beam bends.
    """

    length: float
    section: BeamSection
    modes: ModeCounts
    ends: tuple[str, str] = ("clamped", "free")
    tip_mass: float = 0.0
    tip_inertia: float = 0.0
    shearing: bool = False
    stiffening: bool = True
    damping_ratio: float = 0.0

    @cached_property
    def _mesh(self) -> BeamMesh:
        return BeamMesh(self.length, ELEMENTS)

    def resistance(self, kind: str) -> AlongBeam:
        """The stiffness against a kind of motion: EI, EA or GJ."""
        about_y, about_z = self.section.bending
        rods = {"twist": self.section.twisting, "stretch": self.section.stretching}
        return ({"bend_y": about_z, "bend_z": about_y} | rods)[kind]

    def _line(self, kind: str) -> BeamLine:
        """What moves and what resists in a kind of motion."""
        s, x = self.section, self._mesh.gauss_points
        nothing, rigid, stiffness = np.zeros_like(x), np.full_like(x, np.inf), self.resistance(kind)(x)
        if kind not in BENDING:
            return BeamLine((s.mass if kind == "stretch" else s.inertia[0])(x), nothing, nothing, rigid, stiffness)
        along = BENDING.index(kind)
        rotary = s.inertia[2 - along](x) if self.shearing else nothing
        return BeamLine(s.mass(x), rotary, stiffness, s.shear[along](x) if self.shearing else rigid, nothing)

    @cached_property
    def _kinds(self) -> list[tuple[str, BeamLine, Array]]:
        """(kind, its line, its modes (unknowns, count)) of each kind that has modes; the largest deflection is 1."""
        found = []
        for kind, count in asdict(self.modes).items():
            if not count:
                continue
            line = self._line(kind)
            mass, stiffness = self._mesh.matrices(line)
            bends = kind in BENDING
            mass[-2, -2] += {"stretch": self.tip_mass, "twist": self.tip_inertia}.get(kind, self.tip_mass)
            mass[-1, -1] += self.tip_inertia if bends else 0.0
            vectors = lowest_modes(mass, stiffness, self._fixed(bends), count, self._rigid(bends))
            deflections = vectors[::2]
            sizes = np.abs(deflections)
            # of equal ones the first, or rounding would choose the sign of an antisymmetric mode
            largest = deflections[
                (sizes > (1.0 - EQUAL_DEFLECTIONS) * sizes.max(axis=0)).argmax(axis=0), np.arange(count)
            ]
            found.append((kind, line, vectors / largest))
        return found

    def _fixed(self, bends: bool) -> list[int]:
        """The unknowns that are 0."""
        root, tip = (ENDS[name] for name in self.ends)
        last = 2 * ELEMENTS
        if not bends:  # a pinned tip slides
            return [0] * root.held + [last] * tip.clamped
        return [0] * root.held + [1] * root.clamped + [last] * tip.held + [last + 1] * tip.clamped

    def _rigid(self, bends: bool) -> int:
        """Number of motions without deformation that the ends leave."""
        held = sum(sum(ENDS[name]) if bends else ENDS[name].held for name in self.ends)
        return max((2 if bends else 1) - held, 0)

    @property
    def frequencies(self) -> Array:
        """(m,) of each mode alone [rad/s]"""
        return np.sqrt(np.diag(self._stiffness()) / _masses(self._points()))

    @property
    def mode_names(self) -> tuple[tuple[str, str], ...]:
        """(name, unit) of each mode"""
        counts = asdict(self.modes).items()
        return tuple((f"{kind}_{k + 1}", _UNITS[kind]) for kind, count in counts for k in range(count))

    def displacements(self, x: Array) -> tuple[tuple[Array, Array], Array]:
        """((φ (k, m, 3), g (k, m, m, 3)) of the axis, ψ (k, m, 3) of the sections) at x (k,) [m]."""
        phi, psi = np.zeros((len(x), 0, 3)), np.zeros((len(x), 0, 3))
        for kind, line, vectors in self._kinds:
            deflection, _, angle, _ = self._mesh.evaluate(line, vectors, x)
            linear, angular = DIRECTIONS[kind]
            phi = np.concatenate([phi, deflection[:, :, None] * linear], axis=1)
            turn = angle if kind in BENDING else deflection
            psi = np.concatenate([psi, turn[:, :, None] * angular], axis=1)
        curve = np.zeros((*phi.shape[:2], phi.shape[1], 3))
        if self.stiffening:
            curve[..., 0] = -self._shortening(x)
        return (phi, curve), psi

    def _slopes(self, x: Array) -> Array:
        """(…, m, 2) of the deflections along y and z at x (…)"""
        return self._bending("slope", x)

    def _bending(self, what: str, x: Array) -> Array:
        """(…, m, 2) of the bending along y and z at x (…); what: a field of `Shapes`."""
        parts = [np.zeros((x.size, 0, 2))]
        for kind, line, vectors in self._kinds:
            value = getattr(self._mesh.evaluate(line, vectors, x.ravel()), what)
            parts.append(value[:, :, None] * DIRECTIONS[kind][0][1:])
        return np.concatenate(parts, axis=1).reshape(*x.shape, -1, 2)

    def _hardening(self) -> Array:
        """(m, m, m, m), symmetric: the energy ½ ∫ EI (v′ v″ + w′ w″)² of a bend by angles that are not small, as
        ¼ Σ h_κλμν η_κ η_λ η_μ η_ν. An axis that keeps its length has the curvature v″² + w″² + (v′ v″ + w′ w″)²."""
        x, w = self._mesh.gauss_points.ravel(), self._mesh.gauss_weights.ravel()
        root = np.sqrt(np.stack([about(x) for about in self.section.bending[::-1]], axis=-1))
        change = np.einsum("pi,pui,pvi->puv", root, self._slopes(x), self._bending("curvature", x))
        change = 0.5 * (change + change.swapaxes(1, 2))
        plain = 2.0 * np.einsum("p,pkl,puv->kluv", w, change, change)
        turns = [plain, np.einsum("kluv->kulv", plain), np.einsum("kluv->kvul", plain)]
        return without_rounding(np.sum(turns, axis=0) / 3.0, ROUNDING)

    def _shortening(self, x: Array) -> Array:
        """(k, m, m) ∫ v′_μ v′_ν + w′_μ w′_ν from the root to x (k,)"""
        mesh = self._mesh
        slopes = self._slopes(mesh.gauss_points)
        whole = np.einsum("eg,egui,egvi->euv", mesh.gauss_weights, slopes, slopes)
        before = np.concatenate([np.zeros_like(whole[:1]), np.cumsum(whole, axis=0)])
        e = np.clip((x / mesh.h).astype(int), 0, ELEMENTS - 1)
        rest = x - e * mesh.h
        slopes = self._slopes(np.minimum((e * mesh.h)[:, None] + rest[:, None] * GAUSS[0], self.length))
        return before[e] + np.einsum("kg,kgui,kgvi->kuv", rest[:, None] * GAUSS[1], slopes, slopes)

    def displacement(self, point: Array) -> Displacement:
        """Of a point (3,) that is fixed to the section at its x. Raises InputError beyond the ends."""
        x, beyond = float(point[0]), 1e-9 * self.length
        if not -beyond <= x <= self.length + beyond:
            what = f"x = {x:.10g} m is beyond the beam, which ends at {self.length:.10g} m"
            raise InputError(f"{what}; move it or lengthen the beam")
        axis, psi = self.displacements(np.clip([x], 0.0, self.length))
        (phi,), (g,) = offset(axis, psi, np.array([[0.0, *point[1:]]]))
        return Displacement(PointCurve(point, phi, g), psi[0])

    def link(self) -> ElasticLink:
        """The constants of the beam."""
        points = self._points()
        modal = points.modal_mass()
        stiffness = self._stiffness()
        return ElasticLink(
            *points.rigid_body,
            self.mode_names,
            ModalMass(*(without_rounding(part, ROUNDING) for part in modal)),
            stiffness,
            2.0 * self.damping_ratio * np.diag(np.sqrt(np.diag(stiffness) * _masses(points))),
            self.displacement,
            self._hardening() if self.stiffening else np.zeros((len(stiffness),) * 4),
            REMEDIES,
            partial(pieces_along, self.length, self.displacement),
            self.length,
        )

    def _points(self) -> MassPoints:
        """Sections as points on both sides of the axis, with their moments of inertia."""
        x, w = self._mesh.gauss_points.ravel(), self._mesh.gauss_weights.ravel()
        mass, inertia = w * self.section.mass(x), np.array([w * about(x) for about in self.section.inertia])
        axis, psi = self.displacements(x)
        if not self.shearing:
            psi = psi * _X  # the inertia of the sections resists twisting, not bending
        axial = np.stack([x, 0.0 * x, 0.0 * x], axis=-1)
        return solids(mass, axial, inertia.T, axis, psi).with_affine_curve()

    def _stiffness(self) -> Array:
        """K (m, m), diagonal: the modes are orthogonal in it"""
        squares = []
        for _, line, vectors in self._kinds:
            _, stiffness = self._mesh.matrices(line)
            squares += [float(vector @ stiffness @ vector) for vector in vectors.T]
        return np.diag(squares)


_X, _Y, _Z = np.eye(3)
BENDING = "bend_y", "bend_z"
# kind -> direction of the deflection, and of the rotation of the section that goes with its angle
DIRECTIONS = {"bend_y": (_Y, _Z), "bend_z": (_Z, -_Y), "twist": (0.0 * _X, _X), "stretch": (_X, 0.0 * _X)}
_UNITS = {"bend_y": "m", "bend_z": "m", "twist": "rad", "stretch": "m"}


def _masses(points: MassPoints) -> Array:
    """(m,) ∫ φ·φ of each mode"""
    return np.einsum("p,pui,pui->u", points.mass, points.linear, points.linear)


def constant(value: float) -> AlongBeam:
    """The same number all along the beam."""
    return lambda x: np.full_like(x, value, dtype=float)


# --- the finite elements ---


class Shapes(NamedTuple):
    """Shapes of an element at points (k,): deflection and its slope, angle of the section and its slope; (k, 4) each,
    per unit of the deflections and angles of its two nodes."""

    deflection: Array
    slope: Array
    angle: Array
    curvature: Array


def shapes(x: Array, h: float, shear: Array | float) -> Shapes:
    """x (k,): places in the element, 0 to 1; h: its length [m]; shear: 12 EI / (κGA h²), 0 without shear."""
    x2, x3 = x * x, x * x * x
    rows = [
        # constant part, part of the shear; deflection, slope, angle, curvature
        [(1.0 - 3.0 * x2 + 2.0 * x3, 1.0 - x), (h * (x - 2.0 * x2 + x3), 0.5 * h * (x - x2))],
        [(3.0 * x2 - 2.0 * x3, x), (h * (x3 - x2), 0.5 * h * (x2 - x))],
        [(6.0 * (x2 - x) / h, 0.0 * x - 1.0 / h), (1.0 - 4.0 * x + 3.0 * x2, 0.5 - x)],
        [(6.0 * (x - x2) / h, 0.0 * x + 1.0 / h), (3.0 * x2 - 2.0 * x, x - 0.5)],
        [(6.0 * (x2 - x) / h, 0.0 * x), (1.0 - 4.0 * x + 3.0 * x2, 1.0 - x)],
        [(6.0 * (x - x2) / h, 0.0 * x), (3.0 * x2 - 2.0 * x, x)],
        [((12.0 * x - 6.0) / h**2, 0.0 * x), ((6.0 * x - 4.0) / h, 0.0 * x - 1.0 / h)],
        [((6.0 - 12.0 * x) / h**2, 0.0 * x), ((6.0 * x - 2.0) / h, 0.0 * x + 1.0 / h)],
    ]
    found = [
        np.stack([(own + shear * more) / (1.0 + shear) for own, more in (*rows[k], *rows[k + 1])], axis=-1)
        for k in range(0, len(rows), 2)
    ]
    return Shapes(*found)


class BeamLine(NamedTuple):
    """What resists and what moves along a line of elements, at the Gauss points (elements, 4) of each; the mass and the
    rotary inertia are per length. A rod, which stretches or twists, has a `rod` stiffness only."""

    mass: Array
    rotary: Array
    bending: Array  # EI
    shear: Array  # κGA, infinite for a beam that does not shear
    rod: Array  # EA or GJ


@dataclass(frozen=True)
class BeamMesh:
    """Equal elements of a line of some length [m]."""

    length: float
    elements: int

    @property
    def h(self) -> float:
        return self.length / self.elements

    @property
    def gauss_points(self) -> Array:
        """(elements, 4) m"""
        return self.h * (np.arange(self.elements)[:, None] + GAUSS[0])

    @property
    def gauss_weights(self) -> Array:
        """(elements, 4) m"""
        return np.tile(self.h * GAUSS[1], (self.elements, 1))

    def matrices(self, line: BeamLine) -> tuple[Array, Array]:
        """(mass, stiffness) of the unknowns: deflection and angle of node after node."""
        size = 2 * (self.elements + 1)
        mass, stiffness = np.zeros((size, size)), np.zeros((size, size))
        for e in range(self.elements):
            here = slice(2 * e, 2 * e + 4)
            N = shapes(GAUSS[0], self.h, self.shear(line)[e])
            w = self.gauss_weights[e]
            sheared = N.slope - N.angle
            mass[here, here] += _gram(w * line.mass[e], N.deflection) + _gram(w * line.rotary[e], N.angle)
            stiffness[here, here] += _gram(w * line.bending[e], N.curvature) + _gram(w * line.rod[e], N.slope)
            if self.shear(line)[e]:
                stiffness[here, here] += _gram(w * line.shear[e], sheared)
        return mass, stiffness

    def shear(self, line: BeamLine) -> Array:
        """12 EI / (κGA h²) (elements,)"""
        return 12.0 * line.bending.mean(axis=1) / (line.shear.mean(axis=1) * self.h**2)

    def evaluate(self, line: BeamLine, nodal: Array, x: Array) -> Shapes:
        """Of solutions `nodal` (size, m) at places x (k,) [m]: (k, m) each."""
        e = np.clip((x / self.h).astype(int), 0, self.elements - 1)
        N = shapes(x / self.h - e, self.h, self.shear(line)[e])
        unknowns = nodal[2 * e[:, None] + np.arange(4)]  # (k, 4, m)
        return Shapes(*(np.einsum("kn,knm->km", part, unknowns) for part in N))


def _gram(weights: Array, rows: Array) -> Array:
    """Σ w rᵀ r over the points."""
    return np.einsum("k,ki,kj->ij", weights, rows, rows)


def lowest_modes(mass: Array, stiffness: Array, fixed: list[int], count: int, rigid: int) -> Array:
    """(size, count) eigenvectors of K x = ω² M x with the lowest ω, unknowns `fixed` at 0, after the `rigid` motions.

    Without rigid motions it is M x = x / ω² K x: then a heavy body at the tip leaves the lowest modes exact."""
    from scipy.linalg import eigh  # takes longer to import than most rigs to read

    free = np.setdiff1d(np.arange(len(mass)), fixed)
    K, M = (matrix[np.ix_(free, free)] for matrix in (stiffness, mass))
    vectors = eigh(K, M)[1] if rigid else eigh(M, K)[1][:, ::-1]
    found = np.zeros((len(mass), count))
    found[free] = vectors[:, rigid : rigid + count]
    return found
