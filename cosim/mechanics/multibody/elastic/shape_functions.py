"""An elastic link along x whose mode shapes are functions of x in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.link import Displacement, ElasticLink, Remedies, pieces_along
from cosim.mechanics.multibody.elastic.mass_points import MassPoints
from cosim.mechanics.multibody.elastic.modal_link import SYMMETRIC, check_symmetric, modal_link
from cosim.mechanics.multibody.elastic_bodies import PointCurve

PANELS = 64  # of 4 Gauss points each
UNITS = "m", "rad"
REMEDIES = Remedies(
    held="return more shapes that move this place, or not this one",
    along="return a shape along the axis, or no curve",
)
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(4)


@dataclass(frozen=True, eq=False)
class ShapeFunctions:
    """length [m]; mass(x): per length [kg/m]; modes: (name, unit) of each; linear(x): φ (m, 3); stiffness K (m, m).

    Where they are not none: angular(x): ψ (m, 3), rotations of what is attached; curve(x): g (m, m, 3), second-order
    displacements; further_mass (m, m): what is added to ∫ φ·φ, such as for sections that turn. x is one number [m]
    from 0, where the frame of the link is, to length.
    """

    length: float
    mass: Callable[[float], float]
    modes: tuple[tuple[str, str], ...]
    linear: Callable[[float], Array]
    stiffness: Array
    damping_ratio: float = 0.0
    angular: Callable[[float], Array] | None = None
    curve: Callable[[float], Array] | None = None
    further_mass: Array | None = None

    def link(self) -> ElasticLink:
        """Raises InputError for functions that return arrays of wrong shapes, and what `modal_link` raises."""
        self._check()
        h = self.length / PANELS
        x = (h * (np.arange(PANELS)[:, None] + 0.5 * (_POINTS + 1.0))).ravel()
        mass = np.tile(0.5 * h * _WEIGHTS, PANELS) * np.array([self._value("mass", self.mass, v, ()) for v in x])
        if not (mass > 0.0).all():
            k = int(np.argmin(mass > 0.0))
            raise InputError(f"mass({x[k]:.4g}) is not above 0; return the mass per length in kg/m")
        stiffness = self._matrix("stiffness", self.stiffness)
        paths = [self._path(np.array([v, 0.0, 0.0])) for v in x]
        points = MassPoints(mass, *(np.array(part) for part in zip(*paths, strict=True)))
        if np.abs(points.curve - points.curve.swapaxes(1, 2)).max() > SYMMETRIC * np.abs(points.curve).max():
            raise InputError("curve is not symmetric in the modes; add it to its transpose and halve it")
        points = points.with_affine_curve()
        body, modal = points.rigid_body, points.modal_mass()
        if self.further_mass is not None:
            further = self._matrix("further_mass", self.further_mass)
            check_symmetric("further_mass", further)
            if np.linalg.eigvalsh(further)[0] < -1e-12 * np.abs(further).max():
                raise InputError("further_mass has a negative eigenvalue; correct its signs")
            modal = modal._replace(rest_mass=modal.rest_mass + further)
        pieces = partial(pieces_along, self.length, self.displacement)
        found = modal_link(body, self.modes, modal, stiffness, self.damping_ratio, self.displacement, REMEDIES, pieces)
        return replace(found, length=self.length)

    def _check(self) -> None:
        """Raises InputError for an invalid length, invalid modes and functions."""
        if not 0.0 < self.length < np.inf:
            raise InputError(f"length = {self.length:g} m must be above 0")
        for name in ("mass", "linear"):
            if not callable(getattr(self, name)):
                raise InputError(f"{name} is not a function; return one of x")
        names = []
        for k, mode in enumerate(self.modes, 1):
            if not isinstance(mode, tuple | list) or len(mode) != 2 or mode[1] not in UNITS:
                raise InputError(f"mode {k} is {mode!r}; it must be a pair of a name and a unit, 'm' or 'rad'")
            if not str(mode[0]).isidentifier() or mode[0] in names:
                what = f"the name {mode[0]!r} of mode {k}"
                raise InputError(f"{what} must be one word that no other mode has, of letters, digits and _")
            names.append(mode[0])
        if not names:
            raise InputError("there are no modes; give the name and unit of each")

    def displacement(self, point: Array) -> Displacement:
        """Of a point (3,) of the axis. Raises InputError for others."""
        tolerance = 1e-9 * self.length
        if np.abs(point[1:]).max() > tolerance or not -tolerance <= point[0] <= self.length + tolerance:
            place = ", ".join(f"{value:.6g}" for value in point)
            what = f"({place}) m is not on the axis of the link, x from 0 to {self.length:g} m; move it there"
            raise InputError(what)
        x = float(np.clip(point[0], 0.0, self.length))
        at = np.array([x, 0.0, 0.0])
        return Displacement(self._path(at), self._values("angular", self.angular, x, (self._m, 3)))

    def _matrix(self, name: str, matrix: Array) -> Array:
        wanted = f"({self._m}, {self._m}), of finite numbers"
        try:
            value = np.asarray(matrix)
        except ValueError:
            raise InputError(f"{name} has rows of different lengths; it must be {wanted}") from None
        if value.dtype.kind not in "iuf" or not np.isfinite(value).all():
            raise InputError(f"{name} is not of real, finite numbers; it must be {wanted}")
        if value.shape != (self._m, self._m):
            raise InputError(f"{name} has the shape {value.shape}; it must be {wanted}")
        return value.astype(float)

    @property
    def _m(self) -> int:
        return len(self.modes)

    def _path(self, point: Array) -> PointCurve:
        x, m = float(point[0]), self._m
        linear = self._values("linear", self.linear, x, (m, 3))
        return PointCurve(point, linear, self._values("curve", self.curve, x, (m, m, 3)))

    def _values(self, name: str, function: Callable[[float], Array] | None, x: float, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape) if function is None else self._value(name, function, x, shape)

    @staticmethod
    def _value(name: str, function: Callable[[float], object], x: float, shape: tuple[int, ...]) -> Array:
        value = np.asarray(function(x), dtype=float)
        if value.shape != shape:
            raise InputError(f"{name}({x:.4g}) has the shape {value.shape}; return {shape}")
        if not np.isfinite(value).all():
            raise InputError(f"{name}({x:.4g}) is not finite; correct it")
        return value
