"""Drives in closed loops that work against each other are warned of before a run, and shared efforts are not."""

from __future__ import annotations

import warnings

import pytest
import yaml

from cosim import Rig, load_rig
from cosim.errors import RunWarning

FOUR_BAR = {
    "gravity": [0, -9.81, 0],
    "bodies": [
        {"name": "crank", "mass": 1, "com": [0.1, 0, 0], "inertia": [0, 0.01, 0.01]},
        {
            "name": "coupler",
            "origin": {"xyz": [0.2, 0, 0]},
            "mass": 2,
            "com": [0.25, 0, 0],
            "inertia": [0, 0.05, 0.05],
        },
        {
            "name": "rocker",
            "parent": "base",
            "origin": {"xyz": [0.5, 0, 0]},
            "mass": 1,
            "com": [0.2, 0, 0],
            "inertia": [0, 0.02, 0.02],
        },
        {"name": "arm", "mass": 1, "com": [0.1, 0, 0], "inertia": [0, 0.01, 0.01]},
    ],
    "loops": [
        {
            "name": "pin",
            "parent": "rocker",
            "child": "coupler",
            "origin": {"xyz": [0.4, 0, 0]},
            "child_origin": {"xyz": [0.5, 0, 0]},
        }
    ],
}
STARTS = {"crank": {"position": 0}, "coupler": {"guess": -0.925}, "rocker": {"guess": -1.57}, "arm": {"position": 0}}


def rig_of(actuated, controller=None, latched=()):
    """A four-bar and an arm beside it with these joints actuated."""
    joints = {name: {"initial": start, "latched": name in latched} for name, start in STARTS.items()}
    for name in actuated:
        joints[name]["actuator"] = {"type": "ideal"}
    controller = controller or {"type": "pid", "kp": 50, "ki": 0, "kd": 5}
    hold = {"name": "hold", "joints": list(actuated), **controller}
    return {"mechanism": FOUR_BAR, "joints": joints, "controllers": [hold], "schedule": {"duration": 0.01}}


def lines(rig):
    """The warnings of a rig about drives against each other."""
    _, misfits = Rig.from_dict(rig).warnings
    return [line for line in misfits if "against each other" in line]


@pytest.mark.parametrize(
    ("actuated", "warned"),
    [
        (["crank"], False),
        (["rocker", "arm"], False),
        (["crank", "coupler"], True),
        (["crank", "coupler", "rocker", "arm"], True),
    ],
)
def test_more_drives_than_independent_joints(actuated, warned, said):
    found = lines(rig_of(actuated))
    assert len(found) == warned
    said(found)
    assert "arm" not in str(found)


def test_drives_that_share_efforts_are_meant():
    """A controller that follows neither position nor velocity: two motors may turn one shaft."""
    assert lines(rig_of(["crank", "rocker"], {"type": "passthrough", "interface": "effort"})) == []
    for interface, gains in (("position", {"kp": 50}), ("velocity", {"kd": 5})):
        assert len(lines(rig_of(["crank", "rocker"], {"type": "passthrough", "interface": interface, **gains}))) == 1


def test_a_latched_joint_of_a_loop_leaves_it_nothing_to_drive():
    assert len(lines(rig_of(["rocker"], latched=["crank"]))) == 1


def test_a_run_and_a_check_say_it(command, tmp_path):
    (tmp_path / "over.yaml").write_text(yaml.safe_dump(rig_of(["crank", "rocker"])))
    for word in ("check", "run"):
        assert command.prints(word, tmp_path / "over.yaml").count("against each other") == 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RunWarning)
        load_rig(tmp_path / "over.yaml").run()
    assert sum("against each other" in str(each.message) for each in caught) == 1


def slider_crank(goal, **keys):
    """A crank of 0.1 m and a rod of 0.3 m: the piston, which is driven, is between 0.2 m and 0.4 m from the crank."""
    bodies = [
        {"name": "crank", "mass": 2, "com": [0.03, 0, 0], "inertia": [0, 0.005, 0.005]},
        {"name": "rod", "origin": {"xyz": [0.1, 0, 0]}, "mass": 1, "com": [0.12, 0, 0], "inertia": [0, 0.008, 0.008]},
        {"name": "piston", "type": "prismatic", "axis": [1, 0, 0], "parent": "base", "mass": 1.5},
    ]
    pin = {"name": "pin", "parent": "piston", "child": "rod", "child_origin": {"xyz": [0.3, 0, 0]}}
    trajectory = {"type": "quintic", "goal": goal, "duration": "1 s"}
    pid = {"name": "hold", "type": "pid", "kp": 50, "ki": 0, "kd": 5, "joints": ["piston"], "trajectory": trajectory}
    joints = {
        "piston": {"initial": {"position": 0.35}, "actuator": {"type": "ideal"}},
        "crank": {"initial": {"guess": 1.0}},
        "rod": {"initial": {"guess": -1.2}},
    }
    mechanism = {"gravity": [0, -9.81, 0], "bodies": bodies, "loops": [pin]}
    schedule = {"step": "1 ms", "duration": "1.2 s"}
    return {"mechanism": mechanism, "joints": joints, "controllers": [pid], "schedule": schedule, **keys}


@pytest.mark.parametrize(
    ("goal", "reach"), [(0.3, None), (0.399, None), (0.201, None), (0.41, 0.4), (0.19, 0.2), (-0.3, 0.2), (5.0, 0.4)]
)
def test_a_goal_beyond_the_reach_of_a_loop(goal, reach):
    """Crank and rod in one line are dead centres."""
    found = [line for line in Rig.from_dict(slider_crank(goal)).warnings[1] if "not close" in line]
    assert len(found) == (reach is not None)
    for line in found:
        assert "loop 'pin'" in line and "'piston'" in line and f"until {reach:g} m" in line


def test_the_words_about_a_goal_beyond_reach(said):
    said([line for line in Rig.from_dict(slider_crank(-0.3)).warnings[1] if "not close" in line])


@pytest.mark.parametrize("duration", [0.3, 1.2])
def test_what_references_ask_after_the_run_is_not_judged(duration):
    found = Rig.from_dict(slider_crank(0.19, schedule={"step": "1 ms", "duration": duration})).warnings[1]
    assert any("not close" in line for line in found) == (duration > 1.0)
