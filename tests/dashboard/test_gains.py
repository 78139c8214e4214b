"""Gains that a user chooses, and the way back."""

import math
from pathlib import Path

import pytest

from cosim.apps.dashboard.gains import GainHistory, refusal, write_overlay
from cosim.apps.dashboard.panels.gains import gains_of
from cosim.apps.dashboard.source import ParameterAbout
from cosim.core.errors import InputError
from cosim.rig.reading.yaml_source import read_overlay


@pytest.fixture
def gains() -> GainHistory:
    return GainHistory(
        {
            "arm.kp": ParameterAbout("N*m/rad", 0.0, None, [100.0, 50.0], ("shoulder", "elbow")),
            "arm.limit": ParameterAbout("N*m", 0.0, None, [1.0, math.nan], ("shoulder", "elbow")),
            "arm.cutoff": ParameterAbout("rad/s", None, None, 20.0),
        }
    )


def test_a_number_that_cannot_be_set_has_its_reason() -> None:
    about = ParameterAbout("N*m", 0.5, 20.0, 1.0)
    assert [refusal("arm.limit", about, number) for number in (0.5, 3, 20.0)] == [""] * 3
    assert refusal("arm.limit", about, 0.25) == "arm.limit: must be at least 0.5 N*m, is 0.25 N*m"
    assert refusal("arm.limit", about, 21) == "arm.limit: must be at most 20 N*m, is 21 N*m"
    for nothing in (None, "", math.nan, math.inf):
        assert refusal("arm.limit", about, nothing) == "arm.limit: no number was typed"


def test_a_move_changes_one_number_of_a_list(gains: GainHistory) -> None:
    assert gains.move("arm.kp", 1, 80.0, now=0.0) == {"arm.kp": [100.0, 80.0]}
    assert gains.changed() == {"arm.kp": [100.0, 80.0]}
    assert gains.at("arm.kp", 1) == 80.0 and gains.at("arm.cutoff", None) == 20.0
    assert gains.move("arm.kp", 1, 80.0, now=0.1) == {}


def test_a_slider_that_moves_on_is_one_move(gains: GainHistory) -> None:
    for k in range(5):
        gains.move("arm.kp", 0, 110.0 + k, now=0.3 * k)
    gains.move("arm.kp", 1, 60.0, now=1.3)  # another slider
    gains.move("arm.kp", 1, 70.0, now=3.0)  # later
    assert gains.undo() == {"arm.kp": [114.0, 60.0]}
    assert gains.undo() == {"arm.kp": [114.0, 50.0]}
    assert gains.undo() == {"arm.kp": [100.0, 50.0]}
    assert gains.undo() == {} and gains.changed() == {}


def test_what_was_undone_can_be_done_again_until_the_next_move(gains: GainHistory) -> None:
    gains.move("arm.cutoff", None, 30.0, now=0.0)
    gains.move("arm.cutoff", None, 40.0, now=5.0)
    gains.undo(), gains.undo()
    assert gains.redo() == {"arm.cutoff": 30.0} and gains.redo() == {"arm.cutoff": 40.0} and gains.redo() == {}
    gains.undo()
    gains.move("arm.kp", 0, 1.0, now=5.1)
    assert gains.redo() == {}


def test_a_move_after_an_undo_is_a_new_one(gains: GainHistory) -> None:
    gains.move("arm.cutoff", None, 30.0, now=0.0)
    gains.move("arm.cutoff", None, 40.0, now=2.0)
    gains.undo()
    gains.move("arm.cutoff", None, 50.0, now=2.1)
    assert gains.undo() == {"arm.cutoff": 30.0} and gains.undo() == {"arm.cutoff": 20.0}


def test_what_the_run_has_is_shown_without_a_way_back(gains: GainHistory) -> None:
    gains.accept({"arm.kp": [1.0, 2.0], "unknown": 3.0})
    assert gains.present == {"arm.kp": [1.0, 2.0], "arm.cutoff": 20.0}
    assert gains.undo() == {} and gains.changed() == {"arm.kp": [1.0, 2.0]}


def test_a_joint_has_its_gains_and_those_of_all(gains: GainHistory) -> None:
    assert gains_of(gains, "elbow") == [("arm.kp", 1), ("arm.cutoff", None)]


def test_an_overlay_is_read_as_it_was_written_and_replaces_no_file(gains: GainHistory, tmp_path: Path) -> None:
    gains.move("arm.kp", 0, 0.1, now=0.0)
    gains.move("arm.cutoff", None, 1e-7, now=0.0)
    paths = [write_overlay(tmp_path, "my arm/1", "rigs/arm.yaml", gains.changed()) for _ in range(2)]
    assert [path.name for path in paths] == ["my_arm_1_gains.yaml", "my_arm_1_gains_2.yaml"]
    assert paths[1].read_text().splitlines()[0] == "# cosim run rigs/arm.yaml --overlay THIS_FILE"
    assert read_overlay(paths[0]) == [
        ("controllers.arm.kp=[0.1, 50.0]", f"{paths[0]}:2 controllers.arm.kp"),
        ("controllers.arm.cutoff=1.0e-07", f"{paths[0]}:3 controllers.arm.cutoff"),
    ]


def test_a_folder_that_takes_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    with pytest.raises(
        InputError, match=r"arm_gains.yaml: cannot be written: .*; start the dashboard in another folder"
    ):
        write_overlay(folder, "arm", "arm.yaml", {"arm.kp": 1.0})
