"""The picture of a bond graph as a circuit, drawn with matplotlib."""

from __future__ import annotations

from math import dist
from typing import Any

from cosim.apps.derive.bond_graph_drawing import COLOURS, LEGEND_HEIGHT, draw_legend
from cosim.apps.derive.circuit_layout import Symbol, TwoPort, lay_out_circuit
from cosim.apps.derive.circuit_symbols import symbol
from cosim.apps.derive.picture import GraphPanel, corners
from cosim.apps.derive.text_boxes import LINE_HEIGHT, Box
from cosim.mechanics.bondgraph import Assembly
from cosim.output.plot.style import INK, SOFT


def circuit_panel(assembly: Assembly, title: str, note: str) -> GraphPanel:
    """The graph as a circuit: efforts across, flows through."""
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
