"""The picture of a bond graph, drawn with matplotlib: half arrows in the direction of power, causal strokes, domains by
colour."""

from __future__ import annotations

from itertools import pairwise
from math import dist
from typing import Any

from cosim.apps.derive.bond_graph_layout import BondPath, Label, lay_out_bond_graph
from cosim.apps.derive.picture import BACKING, GraphPanel, corners
from cosim.apps.derive.text_boxes import LINE_HEIGHT, Point
from cosim.mechanics.bondgraph import Assembly
from cosim.output.plot.style import BLUE, FAINT, GREEN, INK, OCHRE, ROSE, SOFT, VIOLET

COLOURS = {
    "electrical": BLUE,
    "translational": GREEN,
    "rotational": VIOLET,
    "hydraulic": OCHRE,
    "thermal": ROSE,
    "signal": INK,
}
COMPONENT: dict[str, Any] = {"facecolor": "#f6f8fa", "edgecolor": "#d5dbe1"}
BARB = 0.13, 0.07  # of a half arrow: along its bond, to its side
STROKE = 0.09  # half of its length
LEGEND_HEIGHT = 0.35


def bond_graph_panel(assembly: Assembly, title: str, note: str) -> GraphPanel:
    """The graph with its causality."""
    layout = lay_out_bond_graph(assembly)
    low, high = corners([box for label in layout.labels.values() for box in label.boxes])
    low, high = (low[0] - 0.3, low[1] - 0.25 - LEGEND_HEIGHT), (high[0] + 0.3, high[1] + 0.25)

    def draw(axes: Any) -> None:
        from matplotlib.patches import FancyBboxPatch

        for name, (x, y, width, height) in layout.components.items():
            corner = x - width / 2, y - height / 2
            axes.add_patch(
                FancyBboxPatch(corner, width, height, "round,pad=0,rounding_size=0.08", zorder=0, **COMPONENT)
            )
            axes.text(corner[0] + 0.05, y + height / 2 + 0.03, name, size=7.5, color=FAINT)
        for bond in layout.bonds:
            _draw_bond(axes, bond)
        for name, label in layout.labels.items():
            domains = assembly.graph.elements[name].domains
            _draw_label(axes, label, COLOURS[domains[0]] if len(set(domains)) == 1 else INK)
        x, y = draw_legend(axes, assembly, (low[0] + 0.16, low[1] + 0.16))
        axes.text(x, y, "stroke: the end that receives the effort", size=8.0, color=SOFT, va="center_baseline")

    return GraphPanel(title, note, low, high, draw)


def draw_legend(axes: Any, assembly: Assembly, place: Point) -> Point:
    """The colours of the domains in the graph; returns where it ends."""
    x, y = place
    for domain in (domain for domain in COLOURS if domain in assembly.graph.domains):
        axes.plot([x, x + 0.25], [y, y], color=COLOURS[domain], linewidth=2.0)
        axes.text(x + 0.32, y, domain, size=8.0, color=SOFT, va="center_baseline")
        x += 0.55 + 0.075 * len(domain)
    return x, y


def _draw_label(axes: Any, label: Label, color: str) -> None:
    _, (x, y, _, height) = label.boxes
    axes.text(
        *label.place, label.kind, size=12.0, weight="bold", color=color, ha="center", va="center_baseline", zorder=4
    )
    for k, line in enumerate(label.lines):
        at = y + height / 2 - (k + 0.5) * LINE_HEIGHT
        axes.text(
            x, at, line, size=7.5, color=SOFT, ha="center", va="center_baseline", zorder=4
        )  # fmt: skip


def _draw_bond(axes: Any, bond: BondPath) -> None:
    style = {"color": COLOURS[bond.domain], "linewidth": 1.3, "solid_capstyle": "butt", "zorder": 2}
    axes.plot(*zip(*bond.points, strict=True), solid_joinstyle="round", **style)
    before, head = bond.points[-2:]
    along, side = _directions(before, head)
    barb = tuple(head[k] - BARB[0] * along[k] + BARB[1] * side[k] for k in (0, 1))
    axes.plot(*zip(head, barb, strict=True), **style)
    along, side = _directions(*(bond.points[:2] if bond.stroke == bond.points[0] else bond.points[-2:]))
    ends = [tuple(bond.stroke[k] + sign * STROKE * side[k] for k in (0, 1)) for sign in (-1, 1)]
    axes.plot(*zip(*ends, strict=True), **{**style, "linewidth": 2.2, "color": INK})
    x, y = number_place(bond)
    axes.text(x, y, f"{bond.number}", size=6.5, color=FAINT, ha="center", va="center_baseline", zorder=3, bbox=BACKING)


def number_place(bond: BondPath) -> Point:
    """The place of a bond's number: beside the middle of its longest part, opposite to the half arrow."""
    start, end = max(pairwise(bond.points), key=lambda part: dist(*part))
    _, side = _directions(start, end)
    x, y = ((start[k] + end[k]) / 2 - 0.1 * side[k] for k in (0, 1))
    return x, y


def _directions(start: Point, end: Point) -> tuple[Point, Point]:
    """Unit vectors along a bond, and to the side of its half arrow: below, or right of a vertical one."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    along = dx / length, dy / length
    side = along[1], -along[0]
    turned = side[1] > 1e-9 or (abs(side[1]) <= 1e-9 and side[0] < 0)
    return along, (-side[0], -side[1]) if turned else side
