"""Shared by the tests of plot."""

import re

import numpy as np

UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N*m", "command_effort": "N*m"}


def run(joints, interfaces, k=200):
    """Times, artificial signals and units of a run."""
    t = np.linspace(0.0, 1.0, k)
    names = [f"{joint}/{interface}" for joint in joints for interface in interfaces]
    signals = {name: np.sin(t * (3 + i)) for i, name in enumerate(names)}
    return t, signals, {name: UNITS.get(name.split("/")[1], "rad") for name in names}


def texts(path):
    """The texts of an svg in order of drawing: matplotlib writes each as a comment beside its outlines."""
    found = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [re.sub(r"\$\\mathdefault\{(.*)\}\$", r"\1", text) for text in found]


def axes_of(figure):
    """The axes with curves, row by row; the panels of the mechanism are last."""
    return [axes for axes in figure.axes if axes.axison]


LONG = "an arm of two links that follows a point-to-point motion under computed feedforward torque " * 4
