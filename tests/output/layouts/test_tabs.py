"""Which plots of which signals a layout has."""

from cosim.output.layouts import (
    MOST_PLOTS,
    recording_name,
    signal_path,
    stream_name,
    tabs_of,
)


def test_tabs_have_what_there_is():
    joints = dict.fromkeys(["a/reference_position", "a/position", "b/position", "b/measured_error"], "rad")
    units = {**joints, "energy/work": "J", "steps/count": "1", "energy/stored": "J"}
    tabs = tabs_of(units, ["a", "b"])
    assert {
        (tab.title, plot.title): [curve.signals for curve in plot.curves] for tab in tabs for plot in tab.plots
    } == {
        ("position", "a"): [("a/reference_position",), ("a/position",)],
        ("position", "b"): [("b/position",)],
        ("tracking error", "b"): [("b/measured_error",)],  # not the difference of a, which a viewer does not compute
        ("energy", "energy"): [("energy/work",), ("energy/stored",)],
    }


def test_many_joints_are_several_tabs_of_columns():
    joints = [f"j{k}" for k in range(MOST_PLOTS + 1)]
    first, second = tabs_of({f"{joint}/effort": "N*m" for joint in joints}, joints)
    assert (first.title, second.title) == ("effort 1–12", "effort 13–13")
    assert [len(column) for column in first.columns] == [4, 4, 4]
    assert [plot.title for tab in (first, second) for plot in tab.plots] == joints


def test_names_of_curves():
    assert stream_name("elbow/position") == "/elbow/position"
    assert recording_name("elbow/position") == "/joints/elbow/position"
    assert recording_name("energy/work") == "/energy/work"
    assert signal_path("elbow/position") == "/joints/elbow.position"
    assert signal_path("hull.x/position") == '"/joints/hull.x".position'
    assert signal_path("timing/latency") == "/timing.latency"
