"""Modes from a table: nodes with masses, and how far each mode moves them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from cosim.errors import InputError
from cosim.multibody.elastic.arrays import Arrays
from cosim.multibody.elastic.drawn_pieces import knots_of, net_of
from cosim.multibody.elastic.link import ElasticLink
from cosim.multibody.elastic.mass_points import MassPoints, solids
from cosim.multibody.elastic.modal_link import Nodes, check_mass, gram, modal_link, stiffness_by
from cosim.types import Array

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


def read_table(
    path: Path, damping_ratio: float = 0.0, mass: float | None = None, inertia: Array | None = None
) -> ElasticLink:
    """The elastic link of an .npz or .json file with p nodes and m modes. Its arrays, in SI units:

    positions (p, 3) m, masses (p,) kg, displacements φ (p, m, 3) per modal coordinate; one of frequencies (m,) Hz and
    stiffness (m, m); and if wanted inertias (p, 3) kg m² about x, y, z of each node, rotations ψ (p, m, 3) rad,
    second_order displacements g (p, m, m, 3), damping_ratios (m,) in place of `damping_ratio`.

    mass [kg], inertia (3, 3) about the origin: compared with those of the nodes.
    Raises InputError for a file that cannot be read, and for what does not fit together in it.
    """
    file = Arrays(path, NAMES)
    position, masses = file.take("positions", "nodes", 3), file.take("masses", "nodes")
    linear = file.take("displacements", "nodes", "modes", 3)
    for k in np.flatnonzero(masses < 0.0):
        raise file.error(f"node {k + 1} has the negative mass {masses[k]:g} kg; correct it")
    psi = file.take_if_given("rotations", "nodes", "modes", 3)
    inertias = file.take_if_given("inertias", "nodes", 3)
    curve = file.take_if_given("second_order", "nodes", "modes", "modes", 3)
    if inertias is not None and psi is None:
        raise file.error("'inertias' need 'rotations', which are missing")
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
            stiffness = stiffness_by(2.0 * np.pi * file.take("frequencies", "modes"), gram(modal))
        nodes = Nodes(position, linear, curve, angular, "a node of the table")
        ratio = damping_ratio if ratios is None else ratios
        pieces = partial(net_of, knots_of(position, linear, angular))
        return modal_link(points.rigid_body, modes, modal, stiffness, ratio, nodes, pieces)
    except InputError as error:
        raise error if error.place else file.error(error.what) from None
