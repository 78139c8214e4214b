"""The pictures of a bond graph: itself, with half arrows in the direction of power and causal strokes, or its circuit.

Colours are of domains.
"""

from __future__ import annotations

from itertools import pairwise
from math import dist
from typing import Any

from cosim.apps.derive.bond_graph_layout import BondPath, Label, lay_out_bond_graph
from cosim.apps.derive.circuit_layout import Symbol, TwoPort, lay_out_circuit, symbol
from cosim.apps.derive.picture import BACKING, LINE_HEIGHT, Box, GraphPanel, Point, corners
from cosim.mechanics.bondgraph import Assembly
from cosim.output.palette import BLUE, FAINT, GREEN, INK, OCHRE, ROSE, RUST, SOFT, TEAL, VIOLET
from cosim.plugins.actuators._graph_actuator import GraphActuator

COLOURS = {
    "electrical": BLUE,
    "translational": GREEN,
    "rotational": VIOLET,
    "hydraulic": OCHRE,
    "thermal": ROSE,
    "pneumatic": TEAL,
    "enthalpy": RUST,
    "signal": INK,
}
COMPONENT: dict[str, Any] = {"facecolor": "#f6f8fa", "edgecolor": "#d5dbe1"}
BARB = 0.13, 0.07  # of a half arrow: along its bond, to its side
STROKE = 0.09  # half of its length
LEGEND_HEIGHT = 0.35


def bond_graph_panel(actuator: GraphActuator, title: str, note: str) -> GraphPanel:
    """The graph with its causality."""
    assembly = actuator.assembly
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


def circuit_panel(actuator: GraphActuator, title: str, note: str) -> GraphPanel:
    """The graph as a circuit: efforts across, flows through."""
    assembly = actuator.assembly
    circuit = lay_out_circuit(assembly.graph)
    low, high = corners([*circuit.boxes, *((x, y, 0.0, 0.0) for _, points in circuit.wires for x, y in points)])
    low, high = (low[0] - 0.3, low[1] - 0.3 - LEGEND_HEIGHT), (high[0] + 0.3, high[1] + 0.25)

    def draw(axes: Any) -> None:
        for domain, points in circuit.wires:
            axes.plot(*zip(*points, strict=True), color=COLOURS[domain], linewidth=1.2, zorder=1)
        for domain, place in circuit.nodes:
            axes.plot(*place, "o", color=COLOURS[domain], markersize=4.0, zorder=2)
        for one in circuit.symbols:
            _draw_symbol(axes, one)
        for two in circuit.two_ports:
            _draw_two_port(axes, two)
        x, y = draw_legend(axes, assembly, (low[0] + 0.16, low[1] + 0.16))
        axes.text(x, y, "effort across, flow through", size=8.0, color=SOFT, va="center_baseline")

    return GraphPanel(title, note, low, high, draw)


def _draw_symbol(axes: Any, one: Symbol) -> None:
    (x, y), length = one.start, dist(one.start, one.end)
    along = (one.end[0] - x) / length, (one.end[1] - y) / length
    for line in symbol(one.kind, one.domain):
        points = [(x + u * along[0] - v * along[1], y + u * along[1] + v * along[0]) for u, v in line]
        axes.plot(
            *zip(*points, strict=True), color=COLOURS[one.domain], linewidth=1.4, solid_capstyle="round", zorder=3
        )
    _draw_lines(axes, one.lines, one.text)


def _draw_two_port(axes: Any, two: TwoPort) -> None:
    from matplotlib.patches import Rectangle

    x, y, width, height = two.box
    axes.add_patch(
        Rectangle((x - width / 2, y - height / 2), width, height, facecolor="white", edgecolor=INK, zorder=4)
    )
    kind = f"{two.kind} →" if two.forward else f"← {two.kind}"
    axes.text(x, y + 0.22, kind, size=10.0, weight="bold", color=INK, ha="center", va="center_baseline", zorder=5)
    _draw_lines(axes, two.lines, (x, y - 0.1, width, LINE_HEIGHT * len(two.lines)))


def _draw_lines(axes: Any, lines: tuple[str, ...], box: Box) -> None:
    x, y, _, height = box
    for k, line in enumerate(lines):
        at = y + height / 2 - (k + 0.5) * LINE_HEIGHT
        axes.text(x, at, line, size=7.5, color=SOFT, ha="center", va="center_baseline", zorder=5)
