"""The modal integrals of a body that is cut into small rigid pieces, to second order in the modal coordinates.

A piece is displaced by u = Σ φ_μ η_μ + ½ Σ g_μν η_μ η_ν and turned by R = 1 + θ× + ½ (θ×)², θ = Σ ψ_μ η_μ. Pieces
without inertia of their own are points: then h1 to h6 of Jin and Bauer (1991) remain, and the terms in g.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.multibody.elastic_bodies import ModalIntegrals
from cosim.types import Array


class Pieces(NamedTuple):
    """p pieces and m modes."""

    mass: Array  # (p,) kg
    position: Array  # ρ (p, 3) m
    inertia: Array  # (p, 3, 3) about own centres, kg m²
    linear: Array  # φ (p, m, 3)
    curve: Array  # g (p, m, m, 3)
    angular: Array  # ψ (p, m, 3)


class RigidIntegrals(NamedTuple):
    """Of the undeformed body: mass [kg], m c (3,) [kg m], J about the origin (3, 3) [kg m²]."""

    mass: float
    moment: Array
    inertia: Array


def rigid_integrals(pieces: Pieces) -> RigidIntegrals:
    """Mass, centre of mass and inertia of the undeformed body."""
    moment = pieces.mass @ pieces.position
    spread = _second_moment(pieces.mass, pieces.position, pieces.position)
    return RigidIntegrals(float(pieces.mass.sum()), moment, 0.5 * spread + pieces.inertia.sum(axis=0))


def modal_integrals(pieces: Pieces) -> ModalIntegrals:
    """The constants of the modes."""
    w, r, own, phi, g, psi = pieces
    m = phi.shape[1]
    spin_curve = np.einsum("p,pvi->pvi", w, phi)[:, None]  # of mode ν, to be crossed with that of μ
    spin_slope = np.cross(spin_curve, phi[:, :, None]).sum(axis=0)  # [μ, ν] φ_ν × φ_μ
    spin_slope += np.cross(w[:, None, None, None] * r[:, None, None], g).sum(axis=0)
    across = _skew(psi)  # (p, m, 3, 3)
    turning = across @ own[:, None] - own[:, None] @ across  # ∂(R I Rᵀ)/∂η
    spin_slope += np.einsum("pvij,puj->uvi", turning, psi)
    spin_slope += 0.5 * np.einsum("pij,puvj->uvi", own, np.cross(psi[:, None], psi[:, :, None]))
    inertia_slope = np.array([_second_moment(w, r, phi[:, mu]) for mu in range(m)]).reshape(m, 3, 3)
    inertia_curve = np.zeros((m, m, 3, 3))
    for mu in range(m):
        for nu in range(m):
            twice = across[:, mu] @ across[:, nu] + across[:, nu] @ across[:, mu]
            mixed = across[:, mu] @ own @ across[:, nu] + across[:, nu] @ own @ across[:, mu]
            turned = 0.5 * (twice @ own + own @ twice) - mixed
            points = _second_moment(w, phi[:, mu], phi[:, nu]) + _second_moment(w, r, g[:, mu, nu])
            inertia_curve[mu, nu] = points + turned.sum(axis=0)
    return ModalIntegrals(
        moment=np.einsum("p,pui->ui", w, phi),
        moment_curve=np.einsum("p,puvi->uvi", w, g),
        spin=np.einsum("p,pui->ui", w, np.cross(r[:, None], phi)) + np.einsum("pij,puj->ui", own, psi),
        spin_slope=spin_slope,
        inertia_slope=inertia_slope + turning.sum(axis=0),
        inertia_curve=inertia_curve,
        mass=np.einsum("p,pui,pvi->uv", w, phi, phi) + np.einsum("pui,pij,pvj->uv", psi, own, psi),
    )


def _second_moment(w: Array, a: Array, b: Array) -> Array:
    """Σ w (2 a·b 1 − a bᵀ − b aᵀ) (3, 3)"""
    product = np.einsum("p,pi,pj->ij", w, a, b)
    return 2.0 * np.trace(product) * np.eye(3) - product - product.T


def _skew(a: Array) -> Array:
    """a× (…, 3, 3)"""
    return np.cross(a[..., None, :], -np.eye(3))
