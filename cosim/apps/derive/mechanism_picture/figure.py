"""The figure of a mechanism in several postures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cosim.apps.derive.mechanism_picture.pen import Pen
from cosim.apps.derive.mechanism_picture.planar import draw_planar
from cosim.apps.derive.mechanism_picture.sketch import Sketch
from cosim.apps.derive.mechanism_picture.spatial import draw_spatial
from cosim.apps.derive.mechanism_picture.stage import PosedSketch, stage_of
from cosim.apps.derive.mechanism_picture.view import Projection
from cosim.output.plot import save

MARGIN = 0.16  # in
PALEST = 0.3  # shade of the first of several postures
LAYERS = 20.0  # of drawing, of one posture


def plot_mechanism(path: str | Path, sketch: Sketch, view: Projection, poses: np.ndarray, labels: bool = False) -> None:
    """Draw into a png, svg or pdf file, by the suffix of `path`.

    poses: (m, n + 1, 3, 4) of the ground and the bodies in m postures, earlier ones paler; labels: names of joints and
    frames. Raises InputError as `save` does.
    """
    stage = stage_of(sketch, view, poses)
    save(path, lambda: figure_of(stage, labels), "picture", {"svg.hashsalt": "mechanism"})


def figure_of(stage: PosedSketch, labels: bool) -> Any:
    """The figure of matplotlib, in inches: a point of a body lies where `stage.at` has it."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    shades = np.linspace(PALEST, 1.0, len(stage.poses)) ** 1.3 if len(stage.poses) > 1 else np.ones(1)
    pens = [Pen(axes, float(shade), LAYERS * (k + 1)) for k, shade in enumerate(shades)]
    draw = draw_planar if stage.view.planar else draw_spatial
    draw(stage, pens, Pen(axes), labels)
    low, high = np.array(axes.dataLim.min) - MARGIN, np.array(axes.dataLim.max) + MARGIN
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    figure.set_size_inches(*(high - low))
    return figure
