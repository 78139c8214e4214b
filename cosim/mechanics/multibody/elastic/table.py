"""Modes from a table: nodes with masses, and how far each mode moves them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.arrays import Arrays
from cosim.mechanics.multibody.elastic.link import ElasticLink, Remedies, knots_of, net_of
from cosim.mechanics.multibody.elastic.mass_points import MassPoints, solids
from cosim.mechanics.multibody.elastic.modal_link import Nodes, check_mass, gram, modal_link, stiffness_by

NAMES = (
    "positions",
    "masses",
    "inertias",
    "displacements",
    "rotations",
    "second_order",
    "frequencies",
    "stiffness",
    "damping_ratios",
)
POSSIBLE = 1e-6  # relative excess of a moment of inertia over the sum of the others that is rounding
REMEDIES = Remedies(
    held="add modes to the table that move this place otherwise, or take this one out",
    along="add a mode along the axis to the table, or leave out second_order",
)


def read_elastic_table(
    path: Path, damping_ratio: float = 0.0, mass: float | None = None, inertia: Array | None = None
) -> ElasticLink:
    """The elastic link of an .npz or .json file with p nodes and m modes. Its arrays, in SI units:

    positions (p, 3) m, masses (p,) kg, displacements φ (p, m, 3) per modal coordinate; one of frequencies (m,) Hz and
    stiffness (m, m); and if wanted inertias (p, 3) kg m² about x, y, z of each node, rotations ψ (p, m, 3) rad,
    second_order displacements g (p, m, m, 3), damping_ratios (m,) in place of `damping_ratio`.

    mass [kg], inertia (3, 3) about the origin: compared with the nodes.
    Raises InputError for a file that cannot be read, and for what does not fit together in it.
    """
    file = Arrays(path, NAMES)
    position, masses = file.take("positions", "nodes", 3), file.take("masses", "nodes")
    linear = file.take("displacements", "nodes", "modes", 3)
    if not file.sizes["modes"]:
        raise file.error("'displacements' has no modes; give one or more")
    for k in np.flatnonzero(masses < 0.0):
        raise file.error(f"node {k + 1} has the negative mass {masses[k]:g} kg; correct it")
    psi = file.take_if_given("rotations", "nodes", "modes", 3)
    inertias = file.take_if_given("inertias", "nodes", 3)
    curve = file.take_if_given("second_order", "nodes", "modes", "modes", 3)
    if inertias is not None and psi is None:
        raise file.error("'inertias' need 'rotations', which are missing")
    for k, (small, middle, large) in enumerate(np.sort(np.zeros((0, 3)) if inertias is None else inertias), 1):
        if small < 0.0 or large > (small + middle) * (1.0 + POSSIBLE):
            what = f"the 'inertias' of node {k} are impossible: {small:g}, {middle:g}, {large:g} kg*m^2"
            raise file.error(f"{what}; none may be negative or above the sum of the others")
    angular = np.zeros_like(linear) if psi is None else psi
    curve = np.zeros((*linear.shape[:2], linear.shape[1], 3)) if curve is None else curve
    if np.abs(curve - curve.swapaxes(1, 2)).max(initial=0.0) > 1e-8 * np.abs(curve).max(initial=0.0):
        raise file.error("'second_order' is not symmetric in its modes; add it to its transpose and halve it")
    heavy = masses > 0.0
    if not heavy.any():
        raise file.error("no node has a mass; give 'masses'")
    moving = masses[heavy], position[heavy]
    shape = linear[heavy], curve[heavy]
    points = (
        MassPoints(*moving, *shape) if inertias is None else solids(*moving, inertias[heavy], shape, angular[heavy])
    )
    points = points.with_affine_curve()
    given = [name for name in ("frequencies", "stiffness") if name in file]
    if len(given) != 1:
        raise file.error(f"{'both' if given else 'none'} of 'frequencies' and 'stiffness' given; give one of them")
    ratios = file.take_if_given("damping_ratios", "modes")
    m = file.sizes["modes"]
    modes = tuple((f"mode_{k + 1}", "m") for k in range(m))
    try:
        check_mass(points.rigid_body, mass, inertia)
        modal = points.modal_mass()
        if given == ["stiffness"]:
            stiffness = file.take("stiffness", "modes", "modes")
        else:
            frequencies = file.take("frequencies", "modes")
            for k in np.flatnonzero(frequencies <= 0.0):
                what = f"the frequency {frequencies[k]:g} Hz of mode {k + 1} is not above 0"
                raise InputError(f"{what}; the rigid motions of a link belong to its joint: leave them out")
            stiffness = stiffness_by(2.0 * np.pi * frequencies, gram(modal))
        nodes = Nodes(position, linear, curve, angular, "a node of the table")
        ratio = damping_ratio if ratios is None else ratios
        pieces = partial(net_of, knots_of(position, linear, angular))
        return modal_link(points.rigid_body, modes, modal, stiffness, ratio, nodes, REMEDIES, pieces)
    except InputError as error:
        raise error if error.place else file.error(error.what) from None
