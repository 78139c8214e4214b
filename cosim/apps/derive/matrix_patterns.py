"""Which elements of the matrices of a mechanism are not 0, as text and as a picture.

The Cartesian system [M Qᵀ; Q −C] by blocks, before and after these are put in the order of elimination: bodies and the
joints above them from the tips to the ground, closing constraints last (Baraff 1996). The mass matrix M(q) in joint
coordinates: two dofs are coupled where one carries the other, so branches are not, and the factors LᵀL from the tips
on fill nothing (Featherstone, Efficient factorization of the joint-space inertia matrix for branched kinematic trees,
2005).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim.apps.derive.picture import GraphPanel, save_panels, text_size
from cosim.apps.derive.tables import counted, table
from cosim.core.types import Array
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.formulations.cartesian.assembled import why_not
from cosim.mechanics.formulations.cartesian.ldlt import body_joint_graph, filled_blocks
from cosim.mechanics.formulations.cartesian.system import Cartesian
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.part_names import shown_name
from cosim.output.palette import BLUE, GRID, INK, PALE, RUST

MOST_BLOCKS = 40  # of a side of the matrix that is printed
MOST_DRAWN = 150  # of a side of a matrix that is drawn
BLOCK, FILLED, EMPTY = "x", "+", "·"
VANISHING = "o"  # an element that the branches allow and that is 0 in every position
COLORS = {BLOCK: BLUE, FILLED: RUST, VANISHING: PALE}
POSITIONS = 3  # random ones, at which elements of M(q) are looked at
NEGLIGIBLE = 1e-12  # of the geometric mean of the diagonal elements: rounding
CELL = 0.17  # in, of a drawn element


@dataclass(frozen=True)
class MatrixPattern:
    """A symmetric matrix: the names of its rows and what each element is, BLOCK, FILLED, VANISHING or EMPTY."""

    title: str  # of a picture
    heading: str
    names: Sequence[str]
    elements: Sequence[Sequence[str]]
    legend: str

    @property
    def lines(self) -> list[str]:
        rows = [(name, *row) for name, row in zip(self.names, self.elements, strict=True)]
        return [f"{self.heading}; {self.legend}", *table([("", *self.names), *rows], "<")]


def pattern_lines(model: Model) -> list[str]:
    """The patterns of all matrices; why not, for a mechanism without Cartesian equations or with many bodies."""
    return [*_cartesian_lines(model), "", *_mass_lines(model)]


def draw_patterns(file: Path, model: Model) -> list[str]:
    """Draw the patterns into a png, svg or pdf file; what is left out, and why. Raises InputError for a file that
    cannot be written."""
    patterns, left_out = list[MatrixPattern](), list[str]()
    why, size = _why_not(model), 0
    if why is None:
        size, patterns = _size(system := _cartesian(model)), []
        if size <= MOST_DRAWN:
            patterns += cartesian_patterns(system)
    if why is not None or size > MOST_DRAWN:
        left_out.append(f"without the Cartesian matrix: {why or f'{size} blocks are too many ({MOST_DRAWN} at most)'}")
    if model.nv <= MOST_DRAWN:
        patterns.append(mass_pattern(model))
    else:
        left_out.append(f"without the mass matrix: {model.nv} dofs are too many ({MOST_DRAWN} at most)")
    save_panels(file, [_panel(pattern) for pattern in patterns])
    return left_out


# --- the Cartesian system ---


def _cartesian(model: Model) -> Cartesian:
    system = load_formulation("cartesian", model.equations)
    assert isinstance(system, Cartesian)
    return system


def _why_not(model: Model) -> str | None:
    """Why there is no pattern of the Cartesian matrix, None where there is one."""
    if model.equations.tree.rotors:
        return f"rotor '{model.equations.tree.rotors[0].name}' turns with several joints"
    return why_not(model.equations)


def _size(system: Cartesian) -> int:
    return 2 * len(system.sweeps.parents) + len(system.loops)


def _cartesian_lines(model: Model) -> list[str]:
    if (why := _why_not(model)) is not None:
        return [f"no Cartesian equations: {why}"]
    system = _cartesian(model)
    size = _size(system)
    coordinates, rows = system.size
    counts = f"{counted(coordinates, 'coordinate')}, {counted(rows, 'multiplier')}"
    head = f"Cartesian equations: {counts}, {size} × {size} blocks"
    if size > MOST_BLOCKS:
        return [f"{head}, too many to print ({MOST_BLOCKS} at most)"]
    first, second = cartesian_patterns(system)
    return [
        f"{head}: b of bodies, j of the joints above them, c of closing constraints",
        *first.lines,
        "",
        *second.lines,
    ]


def cartesian_patterns(system: Cartesian) -> list[MatrixPattern]:
    """[M Qᵀ; Q −C] by blocks, with the bodies first, and in the order of elimination."""
    parents, loops = system.sweeps.parents, system.loops
    return [
        _ordered("bodies first", parents, loops, list(range(_size(system)))),
        _ordered("in the order of elimination", parents, loops, system.elimination_order),
    ]


def _ordered(what: str, parents: Sequence[int], loops: Sequence[set[int]], order: Sequence[int]) -> MatrixPattern:
    """The matrix of blocks in an order, with those that its factor fills."""
    n, edges = len(parents), body_joint_graph(parents, loops)
    filled = filled_blocks(edges, order)
    signs = {frozenset(pair): BLOCK for pair in edges} | {frozenset(pair): FILLED for pair in filled}

    def name(v: int) -> str:
        return f"b{v + 1}" if v < n else f"j{v - n + 1}" if v < 2 * n else f"c{v - 2 * n + 1}"

    rows = [
        [signs.get(frozenset((v, w)), EMPTY) if v != w else BLOCK if v < n else EMPTY for w in order] for v in order
    ]
    legend = f"{BLOCK} a block, {FILLED} {counted(len(filled), 'block')} below the diagonal that LDL^T fills"
    return MatrixPattern(f"Cartesian matrix, {what}", what, [name(v) for v in order], rows, legend)


# --- the mass matrix in joint coordinates ---


def _mass_lines(model: Model) -> list[str]:
    if model.nv > MOST_BLOCKS:
        return [f"mass matrix M(q): {model.nv} x {model.nv}, too many to print ({MOST_BLOCKS} at most)"]
    found = mass_pattern(model)
    dofs = table([(f"v{k + 1}", shown_name(name)) for k, name in enumerate(model.dof_names)], "<<")
    return [*found.lines, *dofs]


def mass_pattern(model: Model) -> MatrixPattern:
    """M(q) (nv, nv) by elements."""
    coupled, found = coupled_dofs(model), occurring(model)
    n = range(model.nv)
    rows = [[BLOCK if found[i, j] else VANISHING if coupled[i, j] else EMPTY for j in n] for i in n]
    count = int(np.count_nonzero(found))
    vanish = int(np.count_nonzero(coupled & ~found))
    heading = f"mass matrix M(q) in joint coordinates, {model.nv} x {model.nv}, {counted(count, 'element')} not 0"
    zeros = f", {VANISHING} {counted(vanish, 'element')} 0 in every position though one dof carries the other"
    apart = f"{EMPTY} dofs of different branches"
    apart = f"{apart} without a rotor on both" if model.equations.tree.rotors else f"{apart}; L^T L fills none"
    legend = f"{BLOCK} an element{zeros * bool(vanish)}, {apart}"
    return MatrixPattern("Mass matrix in joint coordinates", heading, [f"v{k + 1}" for k in n], rows, legend)


def coupled_dofs(model: Model) -> Array:
    """(nv, nv) bool: whether a joint of one dof carries, or is, a joint of the other, or a rotor turns with both;
    joints that follow others have the dof of these."""
    tree, e = model.equations.tree, model.equations
    paths = list[set[int]]()
    for k, parent in enumerate(tree.parents):
        paths.append({k} | (paths[parent] if parent != GROUND else set()))
    body_of = [k for k, kind in enumerate(tree.kinds) for _ in range(kind.nv)]
    related = np.array([[a in paths[b] or b in paths[a] for b in body_of] for a in body_of], dtype=bool)
    P = (e.v_map.matrix != 0.0).astype(int)
    turned = tree.rotor_directions != 0.0
    related = related.reshape(len(body_of), len(body_of)) | (turned @ turned.T)
    return (P.T @ related @ P) > 0


def occurring(model: Model) -> Array:
    """(nv, nv) bool: the elements of M(q) that are not 0 in some of the positions looked at."""
    rng, found = np.random.default_rng(0), np.zeros((model.nv, model.nv), dtype=bool)
    for _ in range(POSITIONS):
        M = np.asarray(model.mass_matrix(model.random_configuration(rng), *[0.0] * model.timed))
        size = np.sqrt(np.outer(np.diag(M), np.diag(M)))
        found |= np.abs(M) > NEGLIGIBLE * size
    return found


# --- the picture ---


def _panel(pattern: MatrixPattern) -> GraphPanel:
    n = len(pattern.names)
    margin = 0.2 + max((text_size(name)[0] for name in pattern.names), default=0.0)
    colors: Mapping[str, str] = COLORS

    def draw(axes: Any) -> None:
        from matplotlib.patches import Rectangle

        axes.set_aspect("equal")
        for i, row in enumerate(pattern.elements):
            for j, element in enumerate(row):
                corner = (j * CELL, -(i + 1) * CELL)
                style = {"facecolor": colors.get(element, "white"), "edgecolor": GRID, "linewidth": 0.6}
                axes.add_patch(Rectangle(corner, CELL, CELL, **style))
        text: Any = {"size": 6.5, "color": INK}
        for k, name in enumerate(pattern.names):
            axes.text(-0.05, -(k + 0.5) * CELL, name, ha="right", va="center", **text)
            axes.text((k + 0.5) * CELL, 0.05, name, ha="center", va="bottom", rotation=90, **text)

    _, _, more = pattern.heading.partition(", ")
    note = ", ".join(part for part in (more, _in_colors(pattern.legend)) if part)
    low, high = (-margin, -n * CELL - 0.2), (n * CELL + 0.2, margin)
    return GraphPanel(pattern.title, note, low, high, draw)


def _in_colors(legend: str) -> str:
    """The legend of text with the colours of a picture."""
    words = {f"{BLOCK} ": "blue: ", f"{FILLED} ": "rust: ", f"{VANISHING} ": "grey: ", f"{EMPTY} ": "white: "}
    parts = [next((color + part.removeprefix(sign) for sign, color in words.items() if part.startswith(sign)), part)
             for part in legend.split(", ")]  # fmt: skip
    return ", ".join(parts)
