"""A rig with the inputs of an earlier run is not built again; any other one is."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cosim import InputError, StoppedRun, load_rig
from cosim.core.paths import UNTRACKED
from cosim.rig.reading import input_tracking
from cosim.rig.wiring import cached_parts
from tests.kit.given import beside
from tests.kit.refusals import raised

GIVEN = beside(__file__)

URDF = GIVEN["urdf"]
RIG = """\
mechanism: {urdf: $ROBOTS/swing.urdf}
joints: {hinge: {actuator: {type: ideal}}}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: waypoints, file: points.csv}}
schedule: {duration: 0.1 s}
"""
OWN = """\
mechanism: {urdf: swing.urdf}
joints: {hinge: {actuator: {type: ideal}}}
controllers: [{name: hold, type: hold.py}]
schedule: {duration: 0.1 s}
"""
CONTROLLER = GIVEN["controller"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)
    monkeypatch.setenv("ROBOTS", ".")
    (tmp_path / "rig").mkdir()
    monkeypatch.chdir(tmp_path / "rig")
    Path("rig.yaml").write_text(RIG)
    Path("swing.urdf").write_text(URDF)
    Path("points.csv").write_text("t,hinge\n0,0\n1,0.5\n2,0\n")
    return tmp_path


def built(*overrides, realtime=False):
    """Whether a rig is built that is loaded now."""
    return load_rig("rig.yaml", overrides, realtime=realtime).built


def test_the_second_start_builds_nothing_and_gives_the_same_to_the_bit(folder):
    rig = load_rig("rig.yaml")
    assert rig.built
    first, warnings = rig.run(), rig.warnings
    again = load_rig("rig.yaml")
    second = again.run()
    assert not again.built
    np.testing.assert_array_equal(second.values, first.values)
    np.testing.assert_array_equal(second.t, first.t)
    assert second.rig == first.rig and second.summary["joints"] == first.summary["joints"]
    assert again.warnings == warnings


def test_what_is_not_kept_is_that_of_the_rig_itself(folder):
    load_rig("rig.yaml").run()
    rig = load_rig("rig.yaml")
    assert not rig.built and rig.joints == ("hinge",)
    assert rig.plant.model.dof_names == ("hinge",)
    assert rig.built and rig.spec.mechanism.urdf == Path("swing.urdf")
    with pytest.raises(AttributeError, match="'Rig' object has no attribute 'nothing'"):
        rig.nothing  # noqa: B018


def test_other_gains_are_those_of_this_process_alone(folder):
    load_rig("rig.yaml").run()
    rig = load_rig("rig.yaml")
    before = rig.run()
    rig.set("hold.kp", 70)
    after = rig.run()
    assert not np.array_equal(before.values, after.values)
    assert (before.rig.parameters["hold.kp"], after.rig.parameters["hold.kp"]) == ([50.0], [70.0])
    again = load_rig("rig.yaml")
    assert not again.built
    np.testing.assert_array_equal(again.run().values, before.values)
    np.testing.assert_array_equal(again.run(parameters={"hold.kp": 70}).values, after.values)


def test_a_run_that_is_stopped_has_the_same_reason(folder):
    Path("rig.yaml").write_text(RIG.replace("{type: ideal}", "{type: ideal}, limits: {tracking: 1e-9}"))
    reasons = []
    for _ in range(2):
        reasons.append(str(raised(StoppedRun, load_rig("rig.yaml").run, "1 s")))
    assert reasons[0] == reasons[1]


def change(name, old, new):
    path = Path(name)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


CHANGES = {
    "the rig": lambda patch: change("rig.yaml", "kp: 50", "kp: 51"),
    "the robot file": lambda patch: change("swing.urdf", 'mass value="1"', 'mass value="2"'),
    "a table": lambda patch: change("points.csv", "0.5", "0.6"),
    "a variable": lambda patch: patch.setenv("ROBOTS", "./"),
    "a source": lambda patch: patch.setattr(input_tracking, "source_state", lambda: [("another", 0, 0)]),
    "a package": lambda patch: patch.setattr(input_tracking, "installed_packages", lambda folders: ["another"]),
    "the CPU": lambda patch: patch.setattr(input_tracking, "host", lambda: ("x86_64", "another", "")),
    "Python": lambda patch: patch.setattr(sys, "version", "3.99"),
    "a setting": lambda patch: patch.setenv("COSIM_ANOTHER", "1"),
}


def test_a_changed_input(folder):
    load_rig("rig.yaml").run()
    for what, change in CHANGES.items():
        before = {path: path.read_bytes() for path in Path().iterdir()}
        assert not built(), what
        with pytest.MonkeyPatch.context() as patch:
            change(patch)
            assert built(), what
        for path, content in before.items():
            path.write_bytes(content)


def test_another_request(folder):
    load_rig("rig.yaml").run()
    assert built("controllers.hold.kp=60") and built("schedule.step=2 ms") and built(realtime=True)
    load_rig("rig.yaml", ["controllers.hold.kp=60"]).run()
    assert not built("controllers.hold.kp=60") and not built()
    assert load_rig("rig.yaml", interpret=True).built


def test_a_file_that_is_included(folder):
    include = '<xacro:include filename="swing.urdf"/>'
    Path("robot.xacro").write_text(f'<robot xmlns:xacro="http://www.ros.org/wiki/xacro">{include}</robot>')
    change("rig.yaml", "$ROBOTS/swing.urdf", "robot.xacro")
    load_rig("rig.yaml").run()
    assert not built()
    change("swing.urdf", 'mass value="1"', 'mass value="2"')
    assert built()


def test_a_file_that_is_touched_but_not_changed(folder):
    load_rig("rig.yaml").run()
    for name in ("rig.yaml", "swing.urdf", "points.csv"):
        os.utime(name, (1e9, 1e9))
    assert not built()


def test_sources_that_changed_after_the_start_of_the_process(folder, monkeypatch):
    load_rig("rig.yaml").run()
    monkeypatch.setattr(input_tracking, "source_state", lambda: [("another", 0, time.time_ns())])
    load_rig("rig.yaml").run()
    assert built() and len(list((folder / "cache").glob("*.parts"))) == 1


def test_a_file_that_changes_during_the_run(folder):
    change("rig.yaml", "{type: ideal}", "{type: ideal}, limits: {tracking: 1e-9}")
    with pytest.raises(StoppedRun):
        load_rig("rig.yaml").run()
    rig = load_rig("rig.yaml")
    change("rig.yaml", "kp: 50", "kp: 51")
    with pytest.raises(
        StoppedRun, match=r"stopped at tick .*: a fault whose cause is not known: a file of the rig has"
    ):
        rig.run()
    with pytest.raises(InputError, match="rig: a file of the rig has changed since it was loaded; load it again"):
        rig.plant  # noqa: B018


def test_the_cache_keeps_the_rigs_that_were_used_last(folder, monkeypatch):
    monkeypatch.setattr(cached_parts, "MOST_KEPT", 2)
    load_rig("rig.yaml").run()

    def later():
        """What was used so far, was used a second ago."""
        for file in (folder / "cache").glob("*.parts"):
            os.utime(file, (file.stat().st_mtime - 1.0,) * 2)

    for kp in (60, 70):
        (folder / "cache" / "old.parts").touch()
        os.utime(folder / "cache" / "old.parts", (1e9, 1e9))
        load_rig("rig.yaml", [f"controllers.hold.kp={kp}"]).run()
        later()
        assert not built()  # used again
        later()
    assert not built("controllers.hold.kp=70") and built("controllers.hold.kp=60")


def test_a_damaged_file_of_the_cache(folder):
    load_rig("rig.yaml").run()
    (kept,) = (folder / "cache").glob("*.parts")
    kept.write_bytes(kept.read_bytes()[:-10])
    assert built()
    kept.write_bytes(b"")
    assert built()


def test_inputs_that_are_not_known(folder):
    rig = load_rig("rig.yaml")
    with rig.cached.tracked():
        sys.audit(UNTRACKED, "a robot")
    rig.run()
    assert built()


def in_a_process_of_its_own():
    """Whether the rig was built, and a figure of its run."""
    program = "from cosim import load_rig; rig = load_rig('rig.yaml'); print(rig.built, rig.run()['hinge/effort'][-1])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    was_built, effort = done.stdout.split()
    return was_built == "True", float(effort)


def test_python_files_of_the_user_and_what_they_read(folder):
    Path("rig.yaml").write_text(OWN)
    Path("hold.py").write_text(CONTROLLER)
    Path("gains.py").write_text("KP = 50.0\n")
    Path("offset.txt").write_text("1.0")
    _, effort = in_a_process_of_its_own()
    for name, old, new in (
        ("hold.py", "- KP", "- 2.0 * KP"),
        ("gains.py", "50.0", "5000.0"),
        ("offset.txt", "1.0", "3.00"),
    ):
        before = effort
        change(name, old, new)
        was_built, effort = in_a_process_of_its_own()
        assert was_built and effort != before, name
    assert in_a_process_of_its_own() == (False, effort)


def test_a_block_that_is_entered_twice_ends_once_and_for_all(tmp_path):
    """Whatever the program opens afterwards is none of its inputs."""
    tracker, other = input_tracking.InputTracker(), input_tracking.InputTracker()
    before, after = tmp_path / "before.txt", tmp_path / "after.txt"
    before.write_text("1")
    after.write_text("2")
    with tracker, other, tracker:
        before.read_text()
    after.read_text()
    assert tracker.inputs().files.keys() == {str(before)}
    assert input_tracking._state.tracker is None


def test_a_fifo_is_not_opened_a_second_time(tmp_path):
    """It would wait for a writer; and the inputs are then not known."""
    tracker, path = input_tracking.InputTracker(), tmp_path / "fifo"
    os.mkfifo(path)
    with tracker:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    assert tracker.inputs() is None
