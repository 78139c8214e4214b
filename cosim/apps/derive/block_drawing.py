"""The picture of the block diagram of a bond graph."""

from __future__ import annotations

from typing import Any

from cosim.apps.derive.block_diagram import block_diagram
from cosim.apps.derive.block_layout import DrawnWire, PlacedBlock, lay_out_blocks
from cosim.apps.derive.block_shapes import LONG_LAW, PADDING
from cosim.apps.derive.bond_graph_equations import outputs_of
from cosim.apps.derive.picture import CHARACTER_WIDTH, LINE_HEIGHT, GraphPanel, Point, corners
from cosim.output.palette import BLUE, FAINT, INK, SOFT
from cosim.output.plot import drawable
from cosim.plugins.actuators._graph_actuator import GraphActuator

OUTLINE: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "linewidth": 1.0, "zorder": 4}
TERMINAL: dict[str, Any] = {**OUTLINE, "facecolor": "#eef4fb"}
LAW: dict[str, Any] = {**OUTLINE, "facecolor": "#f6f8fa"}
STATE, VALUE = BLUE, SOFT  # colours of wires: of states, and of others
LEGEND_HEIGHT = 0.35
ARROW_LENGTH, ARROW_WIDTH = 0.085, 0.035


def block_panel(actuator: GraphActuator, title: str, note: str) -> GraphPanel:
    """Integrators, sums, gains and laws, with wires from left to right.

    Raises CompileError for a law with an operation that has no formula.
    """
    diagram = block_diagram(actuator.assembly, outputs_of(actuator), actuator.origins)
    layout = lay_out_blocks(actuator.assembly, diagram)
    bends = [(*point, 0.0, 0.0) for wire in layout.wires for part in wire.parts for point in part]
    low, high = corners([*(box for block in layout.blocks for box in block.boxes), *bends])
    low, high = (low[0] - 0.2, low[1] - 0.25 - LEGEND_HEIGHT), (high[0] + 0.2, high[1] + 0.2)
    kinds = {value: block.block.kind for block in layout.blocks for value in block.block.gives}
    is_long = any(block.shape.text == (LONG_LAW,) for block in layout.blocks)

    def draw(axes: Any) -> None:
        for wire in layout.wires:
            _draw_wire(axes, wire, STATE if kinds[wire.value] == "state" else VALUE)
        for block in layout.blocks:
            _draw_block(axes, block)
        x, y = low[0] + 0.16, low[1] + 0.16
        axes.plot([x, x + 0.25], [y, y], color=STATE, linewidth=2.0)
        long = f"   {LONG_LAW}: a long law, printed as an equation" if is_long else ""
        axes.text(x + 0.32, y, f"state{long}", size=8.0, color=SOFT, va="center_baseline")

    return GraphPanel(title, note, low, high, draw)


def _draw_wire(axes: Any, wire: DrawnWire, color: str) -> None:
    from matplotlib.patches import Polygon

    for part in wire.parts:
        axes.plot(*zip(*part, strict=True), color=color, linewidth=0.9, solid_capstyle="round", zorder=2)
    for x, y in wire.ends:
        head = [(x, y), (x - ARROW_LENGTH, y + ARROW_WIDTH), (x - ARROW_LENGTH, y - ARROW_WIDTH)]
        axes.add_patch(Polygon(head, facecolor=color, edgecolor="none", zorder=3))
    for dot in wire.dots:
        axes.plot(*dot, "o", color=color, markersize=3.2, zorder=3)


def _draw_block(axes: Any, placed: PlacedBlock) -> None:
    block, shape, (x, y) = placed.block, placed.shape, placed.place
    axes.add_patch(_outline(block.kind, placed))
    if block.kind == "gain":
        _write(axes, (x - shape.half_width + 0.05, y), shape.text, INK, "left")
    elif block.kind == "sum":
        for (left, at), sign in zip(placed.inputs, block.signs, strict=True):
            axes.text(left + 0.13, at, "+" if sign > 0 else "−", size=9.0, color=INK, zorder=5, **_CENTRED)
    elif block.kind in ("state", "product"):
        axes.text(x, y, shape.text[0], size=13.0, color=INK, zorder=5, **_CENTRED)
    else:
        titles = shape.title.split("\n") if shape.title else []
        top = y + shape.half_height - PADDING - LINE_HEIGHT * len(titles) / 2
        _write(axes, (x, top), titles, FAINT)
        right = x + shape.half_width
        middle = y - LINE_HEIGHT * len(titles) / 2
        if shape.labels:
            left = CHARACTER_WIDTH * max(map(len, shape.labels)) + 0.08
            _write(axes, (x + left / 2, middle), shape.text, INK)
        else:
            _write(axes, (x, middle), shape.text, INK)
        for (left, at), label in zip(placed.inputs, shape.labels, strict=False):
            _write(axes, (left + 0.05, at), [label], FAINT, "left")
        for (_, at), label in zip(placed.outputs, shape.given, strict=False):
            _write(axes, (right - 0.05, at), [label], INK, "right")
    for k, line in enumerate(shape.name):
        _write(axes, (x, y - shape.half_height - 0.02 - (k + 0.5) * LINE_HEIGHT), [line], STATE)


_CENTRED: dict[str, Any] = {"ha": "center", "va": "center_baseline"}


def _outline(kind: str, placed: PlacedBlock) -> Any:
    from matplotlib.patches import FancyBboxPatch, Polygon, Rectangle

    (x, y), half, high = placed.place, placed.shape.half_width, placed.shape.half_height
    if kind == "gain":
        return Polygon([(x - half, y - high), (x - half, y + high), (x + half, y)], **OUTLINE)
    if kind in ("input", "output", "sum"):
        rounding = f"round,pad=0,rounding_size={min(half, high)}"
        style = OUTLINE if kind == "sum" else TERMINAL
        return FancyBboxPatch((x - half, y - high), 2 * half, 2 * high, rounding, **style)
    return Rectangle((x - half, y - high), 2 * half, 2 * high, **(LAW if kind in ("law", "solve") else OUTLINE))


def _write(axes: Any, place: Point, lines: Any, color: str, side: str = "center") -> None:
    x, y = place
    for k, line in enumerate(lines):
        at = y + LINE_HEIGHT * ((len(lines) - 1) / 2 - k)
        axes.text(x, at, drawable(line), size=7.5, color=color, ha=side, va="center_baseline", zorder=5)
