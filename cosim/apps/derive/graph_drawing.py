"""The picture of a mechanism's graph, drawn with matplotlib: bodies in layers by their depth, joints as arrows, cut
joints dashed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cosim.apps.derive.graph_layout import RADIUS, body_box, edge_curves, lay_out, place_label
from cosim.apps.derive.picture import BACKING, GraphPanel, save_panels
from cosim.apps.derive.text_boxes import Box, Point, break_name, widest_label
from cosim.core.errors import InputError
from cosim.mechanics.multibody.description.structure import Structure
from cosim.output.plot import check_format

MAX_BODIES = 200  # in a picture

BODY: dict[str, Any] = {"facecolor": "#eef4fb", "edgecolor": "#3d4650", "linewidth": 1.1, "zorder": 4}
TREE: dict[str, Any] = {"color": "#3a73ad"}
CUT: dict[str, Any] = {"color": "#c8420b", "linestyle": (0, (4.0, 2.5))}


def plot_graph(path: str | Path, structure: Structure, title: str, note: str = "") -> None:
    """Draw a graph into a png, svg or pdf file, by the suffix of `path`, with `title` and `note` above it.

    Raises InputError for another suffix, more than 200 bodies, or a path that cannot be written.
    """
    check_format(path)
    if structure.size > MAX_BODIES:
        what = f"a graph of {structure.size} bodies is too large to draw ({MAX_BODIES} at most); leave the file out"
        raise InputError(what, str(path))

    save_panels(path, [_panel(structure, title, note)])


def _panel(structure: Structure, title: str, note: str) -> GraphPanel:
    layout = lay_out(structure)
    curves = edge_curves(structure, layout)
    paths = [_path(curve) for curve in curves]
    corners = [tuple(corner) for path in paths for corner in path.get_extents().get_points()]
    xs, ys = zip(*layout.places.values(), *corners, strict=True)
    side = 0.25 + max(RADIUS, widest_label(structure.bodies) / 2)

    def draw(axes: Any) -> None:
        labels = [body_box(name, layout.places[k]) for k, name in enumerate(structure.bodies)]
        for edge, curve, path in zip(structure.edges, curves, paths, strict=True):
            style = CUT if edge.number > structure.size else TREE
            box = place_label(break_name(edge.joint.name), curve, labels)
            labels.append(box)
            _draw_edge(axes, edge.joint.name, path, box, style)
        for number, name in enumerate(structure.bodies):
            _draw_body(axes, number, name, layout.places[number])

    return GraphPanel(title, note, (min(xs) - side, min(ys) - 0.65), (max(xs) + side, max(ys) + 0.45), draw)


def _path(points: Sequence[Point]) -> Any:
    """A path of matplotlib from the points of cubic Bézier curves."""
    from matplotlib.path import Path as Curve

    return Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * (len(points) - 1)])


def _draw_edge(axes: Any, name: str, path: Any, box: Box, style: Mapping[str, Any]) -> None:
    """An arrow, with the joint's name in its box."""
    from matplotlib.patches import FancyArrowPatch

    axes.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=9.0, linewidth=1.2, zorder=2, **style))
    axes.text(
        *box[:2], break_name(name), ha="center", va="center", fontsize=7.5, linespacing=1.0, color=style["color"],
        bbox={**BACKING, "alpha": 1.0}, zorder=3,
    )  # fmt: skip


def _draw_body(axes: Any, number: int, name: str, place: Point) -> None:
    from matplotlib.patches import Circle, Rectangle

    x, y = place
    if number == 0:
        corner = x - RADIUS, y - RADIUS
        axes.add_patch(Rectangle(corner, 2 * RADIUS, 2 * RADIUS, **BODY, hatch="/////"))
        axes.add_patch(Circle(place, 0.55 * RADIUS, facecolor=BODY["facecolor"], linewidth=0.0, zorder=5))
    else:
        axes.add_patch(Circle(place, RADIUS, **BODY))
    axes.text(x, y, f"{number}", ha="center", va="center_baseline", fontsize=9.0, weight="bold", zorder=6)
    axes.text(
        x, y - RADIUS - 0.05, break_name(name), ha="center", va="top", fontsize=8.0, linespacing=1.0,
        bbox=BACKING, zorder=4,
    )  # fmt: skip
