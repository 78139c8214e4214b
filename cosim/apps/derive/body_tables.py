"""`cosim derive --tables`: the constants of bodies from which textbooks build the equations of motion.

Augmented bodies and barycentres of trees of rotations (see `formulations.augmented_bodies`), and the modal integrals of
elastic links (Jin and Bauer, Kane's dynamical equations of flexible multibody systems with tree structure, 1991):

    ∫ρ,  ∫φ_μ,  h1_μ = ∫ρ × φ_μ,  h3_μ = ∫(ρ·φ_μ) E − ρ φ_μᵀ,  h2_μ = h3_μ + h3_μᵀ,
    h4_μν = ∫φ_μ × φ_ν,  h5_μν = ∫(φ_μ·φ_ν) E − φ_μ φ_νᵀ,  h6_μν = ∫φ_μ·φ_ν    over the mass of the undeformed link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cosim.apps.derive.graph_report import check_file
from cosim.apps.derive.matrix_patterns import draw_patterns, pattern_lines
from cosim.apps.derive.plant_model import read_model
from cosim.apps.derive.tables import table
from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.mechanics.formulations import augmented_bodies
from cosim.mechanics.formulations._tree_state import TreeState
from cosim.mechanics.formulations.wittenburg import structure
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.elastic_bodies import ElasticBody, ModalMass
from cosim.mechanics.multibody.part_names import shown_name, whole_of

Pair = tuple[int, int]


class AugmentedBodies(NamedTuple):
    """Of one tree on the ground, by the indices of its bodies. Vectors and K of a body along the axes of its link,
    coupling tensors in ground axes at position 0."""

    members: list[int]
    mass: float
    hangs: bool  # by a rotation about a point of the ground: K about that point, else about the barycentre
    b0: dict[int, Array]  # (3,) from the barycentre to the point on which the body hangs
    d: dict[Pair, Array]  # (3,) where they are not 0
    b: dict[Pair, Array]  # (3,)
    inertia: dict[int, Array]  # K_i (3, 3)
    coupling: dict[Pair, Array]  # K_ij (3, 3)


class ModalIntegrals(NamedTuple):
    """Of an elastic link with m modes, along the axes of these, in SI units."""

    mass: float
    moment: Array  # ∫ρ (3,)
    shape: Array  # ∫φ (m, 3)
    h1: Array  # (m, 3)
    h2: Array  # (m, 3, 3)
    h3: Array  # (m, 3, 3)
    h4: Array  # (m, m, 3)
    h5: Array  # (m, m, 3, 3)
    h6: Array  # (m, m)


def derive_tables(path: Path, file: Path | None = None) -> None:
    """Print the tables of a rig or robot file; with `file` (png, svg, pdf) also draw the patterns of its matrices.

    Raises InputErrors for errors in the rig or robot, InputError where it has no tables and for a file that cannot be
    written."""
    check_file(file, path, "--tables")
    model = read_model(path)
    if not model.nv:
        raise InputError("nothing moves in this mechanism; there are no tables", str(path))
    left_out = [] if file is None else draw_patterns(file, model)
    print("\n".join(table_lines(model)))
    if file is not None:
        print("\n".join(["", f"wrote    patterns {file}", *left_out]))


def table_lines(model: Model) -> list[str]:
    """The tables, and why there are none of augmented bodies."""
    why = augmented_bodies.refusal(model.equations)
    lines = (
        [f"no augmented bodies: {why}"] if why else [x for t in augmented(model) for x in _augmented_lines(model, t)]
    )
    for link, modes, found in integrals(model):
        lines += ["", *_integral_lines(link, modes, found)]
    return [*lines, "", *pattern_lines(model)]


# --- augmented bodies ---


def augmented(model: Model) -> list[AugmentedBodies]:
    """Of every tree on the ground of a mechanism that `augmented_bodies` can treat."""
    equations, tree = model.equations, model.equations.tree
    state = TreeState.of(equations, model.neutral(), np.zeros(model.nv), 0.0)
    T, firsts = structure(tree).T, augmented_bodies.first_bodies(state.parents)
    masses = [body.mass for body in state.central]
    centres = [here.rotation @ body.com for here, body in zip(state.placed, state.central, strict=True)]
    # from ground axes to the axes of the link of a body
    turns = [
        tree.frames[joint.child][1].rotation.T @ here.rotation.T
        for joint, here in zip(tree.joints, state.placed, strict=True)
    ]
    found = []
    for first in sorted(set(firsts)):
        members = [k for k, other in enumerate(firsts) if other == first]
        parts = augmented_bodies.augmented_tree(members, state.parents, T, masses, centres, state.arms)
        hangs = tree.kinds[first] in augmented_bodies.ROTATIONS
        K, _ = (augmented_bodies.hanging if hangs else augmented_bodies.floating)(state, parts)
        found.append(
            AugmentedBodies(
                members,
                float(parts.mass),
                hangs,
                {i: turns[i] @ b for i, b in parts.b0.items()},
                {(i, j): turns[i] @ d for (i, j), d in parts.d.items()},
                {(i, j): turns[i] @ b for (i, j), b in parts.b.items()},
                {i: turns[i] @ K[i, i] @ turns[i].T for i in members},
                {pair: block for pair, block in K.items() if pair[0] != pair[1]},
            )
        )
    return found


def _augmented_lines(model: Model, found: AugmentedBodies) -> list[str]:
    names = [shown_name(joint.child) for joint in model.equations.tree.joints]
    about = "the point on which the body hangs" if found.hangs else "its barycentre"
    numbered = [f"{i + 1}" for i in found.members]
    bodies = [(f"{i + 1}", names[i], *map(_number, found.b0[i]), *_elements(found.inertia[i])) for i in found.members]
    head = ("i", "body", "b_i0 x", "y", "z", *(f"K_{pair}" for pair in ("xx", "yy", "zz", "xy", "xz", "yz")))
    vectors = [
        (f"{i + 1}", *(_vector(of.get((i, j))) for j in found.members))
        for of in (found.d, found.b)
        for i in found.members
    ]
    n = len(found.members)
    lines = [
        f"augmented bodies, M = {found.mass:.6g} kg: to the mass of body i those of the others at its joints",
        f"b_i0 [m] from the barycentre to the point on which the body hangs, K_i [kg*m^2] about {about}, in link axes",
        *table([head, *bodies], "><"),
        *("", "d_ij [m], from the point of body i towards body j back to the one that it hangs on"),
        *table([("i", *numbered), *vectors[:n]], ">"),
        *("", "b_ij = b_i0 - d_ij [m], sum of m_j b_ij over j = 0"),
        *table([("i", *numbered), *vectors[n:]], ">"),
    ]
    coupling = [
        (f"{i + 1} {j + 1}" * (k == 0), *map(_number, row))
        for (i, j), block in sorted(found.coupling.items())
        for k, row in enumerate(np.asarray(block, dtype=float))
    ]
    if coupling:
        lines += ["", "K_ij [kg*m^2], at position 0 in ground axes", *table([("i j", "", "", ""), *coupling], "<>>>")]
    return lines


# --- elastic links ---


def integrals(model: Model) -> Iterator[tuple[str, list[str], ModalIntegrals]]:
    """(link, its modes, its integrals) of every elastic link with modes."""
    tree = model.equations.tree
    for joint, kind, body in zip(tree.joints, tree.kinds, tree.bodies, strict=True):
        if isinstance(body, ElasticBody):
            names = [name.rpartition(".")[2] for name in kind.named(joint.name, kind.dofs)]
            yield whole_of(joint.child), names, integrals_of(body)


def integrals_of(body: ElasticBody) -> ModalIntegrals:
    """The mass of the body is a set of points and a rest, see `ModalMass`."""
    modal: ModalMass = body.modal
    fraction, rho, phi = (np.asarray(x, dtype=float) for x in (modal.fraction, modal.position, modal.linear))
    modes, E = range(phi.shape[1]), np.eye(3)
    h3 = np.array([sum((r @ f) * E - np.outer(r, f) for r, f in zip(rho, phi[:, mu], strict=True)) for mu in modes])
    h4 = np.array([[np.cross(phi[:, mu], phi[:, nu]).sum(axis=0) for nu in modes] for mu in modes])
    rest_spin = np.swapaxes(modal.rest_spin, 0, 1)  # [μ, ν] of ∫φ_μ × φ_ν
    h5 = np.array(
        [
            [sum((f @ g) * E - np.outer(f, g) for f, g in zip(phi[:, mu], phi[:, nu], strict=True)) for nu in modes]
            for mu in modes
        ]
    )
    skew = np.array([[ops.skew(rest_spin[mu, nu]) for nu in modes] for mu in modes])
    return ModalIntegrals(
        float(body.mass),
        np.asarray(body.moment, dtype=float),
        np.einsum("k,kmi->mi", fraction, phi),
        np.array([np.cross(rho, phi[:, mu]).sum(axis=0) for mu in modes]),
        h3 + np.swapaxes(h3, 1, 2),
        h3,
        h4 + rest_spin,
        h5 + 0.5 * (np.asarray(modal.rest_inertia) + skew),
        np.einsum("kmi,kni->mn", phi, phi) + np.asarray(modal.rest_mass),
    )


def _integral_lines(link: str, modes: Sequence[str], found: ModalIntegrals) -> list[str]:
    of_modes = [
        (name, *map(_number, (*found.shape[mu], *found.h1[mu], *found.h3[mu].ravel()))) for mu, name in enumerate(modes)
    ]
    elements = [f"{i}{j}" for i in "xyz" for j in "xyz"]
    head = ("mode", *(f"phi_{i}" for i in "xyz"), *(f"h1_{i}" for i in "xyz"), *(f"h3_{e}" for e in elements))
    pairs = [
        (*(modes[k] for k in (mu, nu)), *map(_number, (found.h6[mu, nu], *found.h4[mu, nu], *found.h5[mu, nu].ravel())))
        for mu in range(len(modes))
        for nu in range(mu, len(modes))
    ]
    of_pairs = ("mode", "mode", "h6", *(f"h4_{i}" for i in "xyz"), *(f"h5_{e}" for e in elements))
    return [
        f"elastic link {link}: mass {found.mass:.6g} kg, integral of rho {', '.join(map(_number, found.moment))} kg*m",
        "integrals over the mass of the undeformed link, SI units, axes of the modes; h2 = h3 + its transpose",
        *table([head, *of_modes], "<"),
        "",
        *table([of_pairs, *pairs], "<<"),
    ]


NEGLIGIBLE = 1e-12  # SI units: rounding


def _number(value: float) -> str:
    return f"{value:.5g}" if abs(value) > NEGLIGIBLE else "0"


def _vector(value: Array | None) -> str:
    return "0" if value is None else f"[{', '.join(map(_number, value))}]"


def _elements(matrix: Array) -> list[str]:
    return [_number(matrix[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
