"""Cells of the plot for joints that move without effort and reference, and for deflections of frames."""

import numpy as np

from cosim.output.plot import RunPlot
from tests.output.plot_helpers import axes_of, run

ALL = ("position", "velocity", "effort", "reference_position")


def flexible(joints):
    """A run of these joints, of which the first one alone has a reference and an effort."""
    t, signals, units = run(joints, ALL)
    for name in joints[1:]:
        del signals[f"{name}/reference_position"]
        signals[f"{name}/effort"] = np.zeros(len(t))
    return t, signals, units


def test_joints_without_effort_and_reference_have_a_cell_each(tmp_path, drawn):
    joints = ["hub", *(f"arm.bend_y_{k}" for k in range(1, 5))]
    t, signals, units = flexible(joints)
    RunPlot(t, signals, joints, "arm", units).save(tmp_path / "a.png")
    axes = axes_of(drawn[0])
    assert [a.get_title() for a in axes] == ["position", "effort", "tracking error", *joints[1:]]
    for a, name in zip(axes[3:], joints[1:], strict=True):
        (line,) = a.lines
        np.testing.assert_array_equal(line.get_ydata(), signals[f"{name}/position"])
        assert a.get_ylabel() == "rad"
    assert [a.get_xlabel() for a in axes[3:]] == ["", "", "", "time [s]"]


def test_a_passive_joint_that_gets_an_effort_has_a_row(tmp_path, drawn):
    joints = ["hub", "pole"]
    t, signals, units = flexible(joints)
    signals["pole/effort"][-1] = 1.0
    RunPlot(t, signals, joints, "arm", units).save(tmp_path / "a.png")
    assert len(axes_of(drawn[0])) == 6


def test_a_deflection_has_a_curve_for_each_axis_along_which_it_is(tmp_path, drawn):
    t, signals, units = flexible(["hub"])
    for axis, size in {"x": 0.0, "y": 1.0, "z": 2.0}.items():
        name = f"tip.{axis}/deflection"
        signals[name], units[name] = size * t, "m"
    RunPlot(t, signals, ["hub"], "arm", units).save(tmp_path / "a.png")
    cell = axes_of(drawn[0])[-1]
    assert (cell.get_title(), cell.get_ylabel()) == ("deflection of tip", "m")
    assert [text.get_text() for text in cell.get_legend().get_texts()] == ["y", "z"]
    np.testing.assert_array_equal(cell.lines[1].get_ydata(), 2.0 * t)
