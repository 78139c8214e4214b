"""Shared by the tests of plots."""

import re
from itertools import combinations

import numpy as np

from cosim.output.plot import RunPlot

UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N*m", "command_effort": "N*m"}
ALL = ("position", "reference_position", "velocity", "effort", "command_effort")
LONG = "an arm of two links that follows a point-to-point motion under computed feedforward torque " * 4


def run(joints, interfaces=ALL, k=40):
    """Times, artificial signals and units of a run."""
    t = np.linspace(0.0, 1.0, k)
    names = [f"{joint}/{interface}" for joint in joints for interface in interfaces]
    signals = {name: np.sin(t * (3 + i)) for i, name in enumerate(names)}
    return t, signals, {name: UNITS.get(name.split("/")[1], "rad") for name in names}


def figure_of(made, joints=("a",), title="arm", **options):
    """The figure of a run, laid out; its pixels are not made."""
    t, signals, units = made
    return RunPlot(t, signals, joints, title, units, **options).draw()


def texts(path):
    """The texts of an svg in order of drawing: matplotlib writes each as a comment beside its outlines."""
    found = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [re.sub(r"\$\\mathdefault\{(.*)\}\$", r"\1", text) for text in found]


def words(figure):
    """The texts of a figure but for the numbers beside its axes."""
    from matplotlib.text import Text

    found = [text.get_text() for text in figure.findobj(Text) if text.get_visible()]
    return [text for text in found if text and not re.fullmatch(r"[−\d.]+", text)]


def axes_of(figure):
    """The axes with curves, row by row; the panels of the mechanism are last."""
    return [axes for axes in figure.axes if axes.axison]


def keys(legend):
    return [text.get_text() for text in legend.get_texts()] if legend else []


def assert_apart(boxes):
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)


def assert_on_the_picture_and_apart(figure, boxes, beyond=0.0):
    """beyond: pixels to the right that do no harm."""
    for box in boxes:
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 + beyond
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1
    assert_apart(boxes)
