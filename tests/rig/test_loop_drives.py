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
