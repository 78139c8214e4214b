"""Recordings and saved runs whose description is spoiled at one place: refused in one line, or shown."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest

from cosim import compare, load_run, open_recording
from cosim.apps.dashboard.panels.scene import Poses
from cosim.apps.dashboard.replay import Replay
from cosim.apps.post_mortem.command import explain
from cosim.cli.run_summary import print_summary
from cosim.core.errors import InputError
from cosim.core.recordings.topics import CHANGES_TOPIC, LOG_LEVELS, LOG_TOPIC, log_message
from cosim.output.recorder import Recorder
from cosim.output.view3d.drawing import read_drawing
from cosim.rig.run.run_file import run_metadata_json
from tests.kit.rigs import rig_in
from tests.kit.spoiled import spoiled

RIG = """\
name: swing
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: tip, joint: wrist, parent: link, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5],
       inertia: [0.1, 0.1, 0.1], origin: {xyz: [0, 0, -1]}}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 30 deg, duration: 0.5}}
schedule: {duration: 20 ms}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return load_run(rig_in(folder, RIG).run(record=folder / "a.mcap") and folder / "a.mcap")


def show(path):
    """All that is printed and drawn of a run."""
    run = open_recording(path) if path.suffix == ".mcap" else load_run(path)
    print_summary(run)
    assert compare(run, run).identical
    explain(run, str(path), 1.0)
    Replay(run).poll()
    drawing = read_drawing(run.rig.drawing, str(path))
    Poses(drawing, {name: k for k, name in enumerate(run.units)})


def check(cases, write):
    failed = []
    for what, spoiled_data in cases:
        path = write(spoiled_data)
        try:
            show(path)
        except InputError as error:
            if "\n" in str(error) or len(str(error)) > 400:
                failed.append(f"{what}: {error}")
        except Exception as error:
            failed.append(f"{what}: {error!r}")
    assert not failed, "\n".join(failed)


def test_a_recording_is_refused_in_one_line_or_shown(tmp_path, run):
    samples = np.rint(run.t * 1e9).astype(np.int64), run.values

    def write(saved):
        path = tmp_path / "a.mcap"
        with Recorder(path, tuple(run.rig.units.items()), {"outline": json.dumps(saved)}) as recorder:
            recorder.append(*samples)
        return path

    whole = json.loads(run_metadata_json(run.rig))
    show(write(whole))
    check(islice(spoiled(whole), 0, None, 5), write)  # of each place other values


def test_a_saved_run_is_refused_in_one_line_or_shown(tmp_path, run):
    path = tmp_path / "a.npz"
    run.save(path)
    with np.load(path) as file:
        arrays = dict(file)

    def write(data):
        text = np.frombuffer(json.dumps(data).encode(), np.uint8)
        np.savez(path, **{**arrays, "run": text})
        return path

    whole = json.loads(arrays["run"].tobytes())
    show(write(whole))
    check(islice(spoiled(whole), 1, None, 7), write)


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        (LOG_TOPIC, log_message(0, "grip released", LOG_LEVELS["info"])),
        (CHANGES_TOPIC, {"tick": 3, "name": "hold.kp", "value": [1.0]}),
    ],
)
def test_events_and_changes_are_refused_in_one_line_or_shown(tmp_path, run, topic, message):
    def write(data):
        path = tmp_path / "a.mcap"
        with Recorder(path, tuple(run.rig.units.items()), {"outline": run_metadata_json(run.rig)}) as recorder:
            recorder.append(np.rint(run.t * 1e9).astype(np.int64), run.values)
            recorder._add_message(topic, 0, json.dumps(data).encode())
        return path

    show(write(message))
    check(((what, data) for what, data in spoiled(message) if str(2**70) not in str(data)), write)
