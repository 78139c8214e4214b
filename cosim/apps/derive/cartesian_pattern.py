"""The pattern of the Cartesian system [M Qᵀ; Q −C] of a mechanism, before and after its blocks are put in the order of
elimination: bodies and the joints above them from the tips to the ground, closing constraints last (Baraff 1996)."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.apps.derive.tables import counted, table
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.formulations.cartesian.assembled import why_not
from cosim.mechanics.formulations.cartesian.ldlt import body_joint_graph, filled_blocks
from cosim.mechanics.formulations.cartesian.system import Cartesian
from cosim.mechanics.multibody import Model

MOST_BLOCKS = 40  # of a side of the matrix that is printed
BLOCK, FILLED, EMPTY = "x", "+", "·"


def pattern_lines(model: Model) -> list[str]:
    """Both patterns with the blocks that LDLᵀ fills; why not, for a mechanism without these equations or with many
    bodies."""
    if (why := why_not(model.equations)) is not None:
        return [f"no Cartesian equations: {why}"]
    system = load_formulation("cartesian", model.equations)
    assert isinstance(system, Cartesian)
    parents, loops = system.sweeps.parents, system.loops
    size = 2 * len(parents) + len(loops)
    coordinates, rows = system.size
    counts = f"{counted(coordinates, 'coordinate')}, {counted(rows, 'multiplier')}"
    head = f"Cartesian equations: {counts}, {size} × {size} blocks"
    if size > MOST_BLOCKS:
        return [f"{head}, too many to print ({MOST_BLOCKS} at most)"]
    return [
        f"{head}: b of bodies, j of the joints above them, c of closing constraints",
        *_pattern("bodies first", parents, loops, list(range(size))),
        "",
        *_pattern("in the order of elimination", parents, loops, system.elimination_order),
    ]


def _pattern(what: str, parents: Sequence[int], loops: Sequence[set[int]], order: Sequence[int]) -> list[str]:
    """The matrix of blocks in an order, with those that its factor fills."""
    n, edges = len(parents), body_joint_graph(parents, loops)
    filled = filled_blocks(edges, order)
    signs = {frozenset(pair): BLOCK for pair in edges} | {frozenset(pair): FILLED for pair in filled}

    def name(v: int) -> str:
        return f"b{v + 1}" if v < n else f"j{v - n + 1}" if v < 2 * n else f"c{v - 2 * n + 1}"

    names = [name(v) for v in order]
    rows = [
        (name(v), *(signs.get(frozenset((v, w)), EMPTY) if v != w else BLOCK if v < n else EMPTY for w in order))
        for v in order
    ]
    heading = f"{what}; {BLOCK} a block, {FILLED} {counted(len(filled), 'block')} below the diagonal that LDL^T fills"
    return [heading, *table([("", *names), *rows], "<")]
