"""A recording is run again from the files in it, to the bit; what cannot be is refused."""

from __future__ import annotations

import gc
import json
import shutil
import sys

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader

from cosim import load_rig, open_recording
from cosim.core.recordings.index import read_index
from cosim.core.recordings.topics import CHANGES_TOPIC
from cosim.output.recorder import Recorder
from cosim.rig.foreign_rig import reading_data_only
from cosim.rig.rerun import rerun
from cosim.rig.rig import Rig
from cosim.rig.rig_files import files_of
from cosim.rig.run.recorded_run import Change
from cosim.rig.run.session import run_session
from cosim.rig.unpacked_rig import rig_of_files
from tests.kit.command import Command
from tests.kit.given import beside
from tests.kit.refusals import refusal
from tests.rig.test_parameters import ARM
from tests.rig.test_run_forms import MOVING

GIVEN = beside(__file__)

OWN = GIVEN["own"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A rig in a folder beside its robot's and its table's, with a controller in Python that imports a module."""
    (tmp_path / "rigs").mkdir()
    (tmp_path / "robots").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "rigs"))
    monkeypatch.delitem(sys.modules, "gains", raising=False)
    (tmp_path / "rigs" / "own.py").write_text(OWN)
    (tmp_path / "rigs" / "gains.py").write_text("KP = 40.0\n")
    robot = '<robot name="r"><link name="world"/>'
    for name, parent in (("a", "world"), ("b", "a")):
        robot += (
            f'<link name="{name}"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
            '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j_{name}" type="continuous"><parent link="{parent}"/><child link="{name}"/>'
            '<axis xyz="0 1 0"/></joint>'
        )
    (tmp_path / "robots" / "r.urdf").write_text(robot + "</robot>")
    rig = {
        "mechanism": {"urdf": str(tmp_path / "robots" / "r.urdf")},  # an absolute path
        "joints": {"all": {"actuator": {"type": "ideal"}}},
        "controllers": [{"name": "own", "type": "own.py"}],
        "schedule": {"step": "1 ms", "duration": 0.1},
    }
    (tmp_path / "rigs" / "arm.yaml").write_text(yaml.safe_dump(rig))
    return tmp_path


def test_a_recording_holds_all_files_and_runs_again_without_the_originals(folder):
    rig = load_rig(folder / "rigs" / "arm.yaml", ["schedule.step=0.5 ms"])
    run = rig.run("50 ms", record=folder / "a.mcap", parameters={"own.scale": 1.3})
    with open(folder / "a.mcap", "rb") as file:
        attached = {item.name: item.media_type for item in make_reader(file, validate_crcs=True).iter_attachments()}
    assert attached == {
        "rigs/arm.yaml": "application/yaml",
        "rigs/arm.as_run.yaml": "application/yaml",
        "robots/r.urdf": "application/xml",
        "rigs/own.py": "text/x-python",
        "rigs/gains.py": "text/x-python",
    }
    shutil.rmtree(folder / "robots")
    (folder / "rigs" / "own.py").unlink()
    (folder / "rigs" / "gains.py").unlink()
    del sys.modules["gains"]
    again = rerun(folder / "a.mcap", trust=True)
    assert again.difference is None and len(again.run.t) == 101
    np.testing.assert_array_equal(again.run.values, run.values)


@pytest.mark.parametrize(("encoding", "realtime"), [("protobuf", True), ("json", False)])
def test_runs_are_equal_to_the_bit(tmp_path, encoding, realtime):
    rig = Rig.from_dict({**MOVING, "recording": {"encoding": encoding}}, realtime=realtime)
    rig.run(0.05, record=tmp_path / "a.mcap", parameters={"hold.kp": [1 / 3, 70]})
    again = rerun(tmp_path / "a.mcap")
    assert again.difference is None and len(again.run.t) == 51


def with_changes(path, changes, make=lambda: Rig.from_dict(MOVING)):
    """A recording of a run in which parameters were changed."""
    rig = make()
    run = run_session(rig, 0.1, changes=changes)
    files = files_of(rig)
    make().run(0.1, record=path)
    metadata = read_index(path).metadata
    with Recorder(path, tuple(run.units.items()), metadata) as recorder:
        for name, content in files.contents.items():
            recorder.attach(name, content, "text/plain")
        for tick, name, value in changes:
            recorder.change(tick * 1_000_000, tick, name, value)
        recorder.append(np.round(run.t * 1e9).astype(np.int64), run.values)


def test_recorded_changes_are_made_again_at_their_ticks(tmp_path):
    changes = [Change(30, "hold.kp", (1 / 3, 50.0)), Change(30, "hold.kd", (2.0, 3.0)), Change(70, "hold.kp", (9.0,))]
    with_changes(tmp_path / "a.mcap", changes)
    again = rerun(tmp_path / "a.mcap")
    assert again.difference is None and list(again.changes) == changes
    with open(tmp_path / "a.mcap", "rb") as file:
        found = [json.loads(m.data) for *_, m in make_reader(file).iter_messages(topics=[CHANGES_TOPIC])]
    assert found[0] == {"tick": 30, "name": "hold.kp", "value": [1 / 3, 50.0]}


def rewritten(path, values=None, files=True, **metadata):
    """The recording with other values, without files, or with other metadata, of which empty ones are left out."""
    run, index = open_recording(path), read_index(path)
    values, contents = np.array(run.values) if values is None else values, index.files() if files else {}
    known, t_ns = index.metadata | metadata, np.round(np.asarray(run.t) * 1e9).astype(np.int64)
    with Recorder(path, tuple(run.units.items()), {name: text for name, text in known.items() if text}) as recorder:
        for name, content in contents.items():
            recorder.attach(name, content, "text/plain")
        recorder.append(t_ns, values)


def edited(path, place, value):
    """The recording with one number replaced; its signal."""
    run = open_recording(path)
    values = np.array(run.values)
    values[place] = value
    rewritten(path, values)
    return run.signals[place[1]]


def test_the_first_signal_that_differs_is_named(tmp_path):
    run = Rig.from_dict(MOVING).run(0.05, record=tmp_path / "a.mcap")
    name = edited(tmp_path / "a.mcap", (20, 3), np.nextafter(run.values[20, 3], np.inf))
    first = rerun(tmp_path / "a.mcap").difference
    assert (first.signal, first.tick, first.t) == (name, 20, run.t[20])
    assert first.rerun == run.values[20, 3] < first.recorded


def test_the_command_reports_a_rerun(tmp_path, capsys, monkeypatch):
    command, path = Command(capsys, monkeypatch), tmp_path / "a.mcap"
    Rig.from_dict(MOVING).run(0.05, record=path)
    printed = "rerun    arm  51 ticks, 23 signals, 0 changes\nequal    every signal at every tick, to the bit\n"
    assert command("replay", "--rerun", path) == (0, printed, [])
    name = edited(path, (7, 2), 1e9)
    code, _, (line,) = command("replay", "--rerun", path)
    assert code == 1 and line.startswith(f"{path}: '{name}' differs first, at tick 7 (t = 0.007 s): 1000000000.0, now ")


def test_what_cannot_be_run_again_is_refused(tmp_path, said):
    path = tmp_path / "a.mcap"
    Rig.from_dict(ARM).run(0.05, record=path)
    saved, plugins = (json.loads(read_index(path).metadata[name]) for name in ("outline", "plugins"))
    assert {"pd_gravity", "ideal"} <= plugins.keys()
    for changed in (
        {"changed_files": "own.py"},
        {"changed_files": "", "outline": json.dumps({**saved, "hardware": True})},
        {"outline": json.dumps(saved), "plugins": json.dumps(plugins | {"pd_gravity": "0" * 64})},
        {"plugins": json.dumps(plugins), "as_run": ""},
    ):
        rewritten(path, **changed)
        said(refusal(rerun, path))


def test_a_file_that_was_changed_after_the_rig_was_loaded_is_noted(folder):
    rig = load_rig(folder / "rigs" / "arm.yaml")
    rig.run(0.01)
    (folder / "rigs" / "gains.py").write_text("KP = 41.0\n")
    assert files_of(rig).changed == ("rigs/gains.py",)


def test_a_module_of_this_program_that_is_another_one_is_refused(folder, said):
    load_rig(folder / "rigs" / "arm.yaml").run(0.01, record=folder / "a.mcap")
    (folder / "rigs" / "gains.py").write_text("KP = 41.0\n")
    said(refusal(rerun, folder / "a.mcap", trust=True))


@pytest.mark.parametrize(
    ("names", "rig"),
    [(["../a.yaml", "rig.yaml"], "rig.yaml"), (["/a.yaml", "rig.yaml"], "rig.yaml"), (["a.yaml"], "b.yaml")],
)
def test_names_of_files_that_are_wrong(said, names, rig):
    said(refusal(rig_of_files, dict.fromkeys(names, "x"), rig, place="a.mcap"))


@pytest.mark.parametrize("name", ["user_controller", "impedance/ur5_impedance", "mechanisms/car_axis"])
def test_samples_run_again_to_the_bit(sample, tmp_path, name):
    sample(name).run("20 ms", record=tmp_path / "a.mcap")
    assert rerun(tmp_path / "a.mcap").difference is None


def test_what_others_left_behind_opens_no_file_while_a_rig_is_read_as_data(tmp_path):
    """A rig that is garbage removes its folder when it is collected, which would be refused there."""
    rig, thresholds = rig_of_files({"rig.yaml": yaml.safe_dump(MOVING)}, "rig.yaml"), gc.get_threshold()
    left = rig.spec.path.parent
    gc.set_threshold(10**6)
    try:
        cycle = [rig]
        cycle.append(cycle)
        del rig, cycle
        assert left.is_dir()
        with reading_data_only(tmp_path):
            gc.set_threshold(1)
            assert len([[k] for k in range(10_000)]) == 10_000 and left.is_dir()
            gc.set_threshold(10**6)
        assert gc.isenabled()
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert not left.exists()
