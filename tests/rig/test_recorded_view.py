"""The mechanism in 3D in recordings: Foxglove's classes read what forward kinematics computes."""

from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from cosim import load_rig, open_recording
from cosim.output.scene.scene import rotated
from cosim.output.view3d.ros_motion import ROS_VIEW_TOPICS
from cosim.rig.rerun import rerun
from cosim.rig.scene import scene_of_rig
from tests.kit.foxglove import foxglove_messages, matrix
from tests.kit.given import beside
from tests.kit.refusals import refusal
from tests.kit.rigs import rig_in

GIVEN = beside(__file__)

ROOT = Path(__file__).parents[2]
RIGS = GIVEN["rigs"]
FRAMES = GIVEN["frames"]


def of_topic(messages, topic):
    return [each for each in messages if each.topic == topic]


def in_ground(static, moving):
    """Frame -> its pose (4, 4) in the ground, as a viewer finds it."""
    edges = {each.child_frame_id: each for message in (*static, moving) for each in message.content.transforms}

    def pose(frame):
        return pose(edges[frame].parent_frame_id) @ matrix(edges[frame]) if frame in edges else np.eye(4)

    return {frame: pose(frame) for frame in edges}


def check_poses(rig, run, messages):
    """Every frame of every message, against the pose of the link at that time."""
    model, rows = rig.plant.model, np.rint(run.t * 1e9).astype(np.int64)
    static, moving = of_topic(messages, "/tf_static"), of_topic(messages, "/tf")
    for message in moving:
        row = int(np.searchsorted(rows, message.t_ns))
        q = np.array([run[f"{name}/position"][row] for name in model.coordinate_names])
        t = [run.t[row]] if model.equations.timed else []
        found = in_ground(static, message)
        assert found.keys() == model.equations.tree.frames.keys() - {model.mechanism.root}
        for frame, pose in found.items():
            np.testing.assert_allclose(pose, model.frame_pose(q, frame, *t), atol=1e-9, rtol=0)
        assert {each.timestamp.ToNanoseconds() for each in message.content.transforms} == {message.log_ns}
    return moving


@pytest.fixture(scope="module", params=RIGS)
def recorded(request, tmp_path_factory):
    """(rig, its run, the messages of its recording)"""
    path = tmp_path_factory.mktemp("view") / "a.mcap"
    rig = load_rig(ROOT / request.param)
    return rig, rig.run(duration=0.1, record=path), foxglove_messages(path)


def test_transforms_are_the_poses_of_all_links(recorded):
    rig, run, messages = recorded
    moving = check_poses(rig, run, messages)
    assert [each.t_ns for each in moving] == [k * 20_000_000 for k in range(6)]
    (scene,) = of_topic(messages, "/scene")
    frames = {each.child_frame_id for each in moving[0].content.transforms} | {rig.plant.model.mechanism.root}
    assert {entity.frame_id for entity in scene.content.entities} <= frames
    assert scene.content.entities


def test_joint_states_are_the_signals(recorded):
    _, run, messages = recorded
    for message in of_topic(messages, "/joint_states"):
        row = int(np.searchsorted(np.rint(run.t * 1e9), message.t_ns))
        states = message.content
        assert states.timestamp.ToNanoseconds() == message.log_ns
        assert [joint.name for joint in states.joints] == list(run.rig.joints)
        for joint in states.joints:
            for what in ("position", "velocity", "effort"):
                assert getattr(joint, what) == run[f"{joint.name}/{what}"][row]


def test_named_frames_stand_on_their_bodies(tmp_path):
    rig = rig_in(tmp_path, FRAMES)
    run = rig.run(record=tmp_path / "a.mcap")
    messages = foxglove_messages(tmp_path / "a.mcap")
    check_poses(rig, run, messages)
    (static,) = of_topic(messages, "/tf_static")
    assert {each.child_frame_id for each in static.content.transforms} >= {"tip", "mark"}


def test_the_rate_is_set_and_null_leaves_them_out(tmp_path):
    for rate, ticks in (("250", 26), ("null", 0), ("3000", 101)):
        rig = load_rig(ROOT / "rigs/two_link.yaml", [f"recording.frame_rate={rate}"])
        rig.run(duration=0.1, record=tmp_path / "a.mcap")
        messages = foxglove_messages(tmp_path / "a.mcap")
        assert [len(of_topic(messages, topic)) for topic in ("/tf", "/joint_states")] == [ticks, ticks]
        with open(tmp_path / "a.mcap", "rb") as file:
            topics = {channel.topic for channel in make_reader(file).get_summary().channels.values()}
        assert ("/scene" in topics) == (ticks > 0)


@pytest.mark.parametrize("rate", ["0", "fast"])
def test_what_is_no_rate(said, rate):
    said(refusal(load_rig, ROOT / "rigs/two_link.yaml", [f"recording.frame_rate={rate}"]))


def test_every_file_of_a_split_recording_shows_the_mechanism(tmp_path):
    rig = load_rig(ROOT / "rigs/ur5_sim.yaml", ["recording.split_time=1"])
    rig.run(duration=2.5, record=tmp_path / "a.mcap")
    t_ns = []
    for name in ("a.mcap", "a.1.mcap", "a.2.mcap"):
        messages = foxglove_messages(tmp_path / name)
        first = messages[0]
        assert [len(of_topic(messages, topic)) for topic in ("/scene", "/tf_static")] == [1, 1]
        assert {messages[0].topic, messages[1].topic} == {"/scene", "/tf_static"}
        assert first.log_ns == min(each.log_ns for each in messages)
        t_ns += [each.t_ns for each in of_topic(messages, "/tf")]
    assert t_ns == [k * 20_000_000 for k in range(126)]


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_they_are_no_signals_and_the_rerun_is_equal(tmp_path, encoding):
    rig = load_rig(ROOT / "rigs/two_link.yaml", [f"recording.encoding={encoding}"])
    run = rig.run(duration=0.2, record=tmp_path / "a.mcap")
    opened = open_recording(tmp_path / "a.mcap")
    assert opened.signals == run.signals
    assert rerun(tmp_path / "a.mcap").difference is None
    assert len(of_topic(foxglove_messages(tmp_path / "a.mcap"), "/tf")) == 11


def test_a_recording_of_ros_has_the_transforms_and_runs_again(tmp_path):
    """The same transforms as those for Foxglove, with the bytes of another serialiser."""
    rig = load_rig(ROOT / "rigs/ur5_sim.yaml")
    rig.run(duration=0.2, record=tmp_path / "a.mcap")
    frames = of_topic(foxglove_messages(tmp_path / "a.mcap"), "/tf")
    load_rig(ROOT / "rigs/ur5_sim.yaml", ["recording.encoding=ros2"]).run(duration=0.2, record=tmp_path / "b.mcap")
    assert rerun(tmp_path / "b.mcap").difference is None
    store, found = get_typestore(Stores.ROS2_KILTED), {}
    with AnyReader([tmp_path / "b.mcap"], default_typestore=store) as reader:
        for connection, _, raw in reader.messages():
            if connection.topic in ROS_VIEW_TOPICS:
                message = reader.deserialize(raw, connection.msgtype)
                assert bytes(store.serialize_cdr(message, connection.msgtype)) == bytes(raw)
                found.setdefault(connection.topic, []).append(message)
    assert {topic: len(each) for topic, each in found.items()} == {"/clock": 11, "/tf": 11, "/tf_static": 1}
    for ours, theirs in zip(found["/tf"], frames, strict=True):
        for one, other in zip(ours.transforms, theirs.content.transforms, strict=True):
            assert (one.header.frame_id, one.child_frame_id) == (other.parent_frame_id, other.child_frame_id)
            for part in ("translation", "rotation"):
                axes = "xyz" if part == "translation" else "xyzw"
                values = [[getattr(getattr(each, part), axis) for axis in axes] for each in (one.transform, other)]
                np.testing.assert_array_equal(*values)


def test_shapes_are_where_the_scene_has_them(recorded):
    rig, _, messages = recorded
    frames = in_ground(of_topic(messages, "/tf_static"), of_topic(messages, "/tf")[0])
    (update,) = of_topic(messages, "/scene")
    found = {
        entity.id: [
            (frames.get(entity.frame_id, np.eye(4)) @ np.append([*three(primitive.pose.position)], 1.0))[:3]
            for primitive in (*entity.cubes, *entity.spheres, *entity.cylinders)
        ]
        for entity in update.content.entities
    }
    for body in scene_of_rig(rig).bodies:
        shapes = [shape for shape in body.shapes if shape.role != "inertia"] or body.shapes
        order = sorted(shapes, key=lambda shape: ("box", "ellipsoid", "cylinder").index(shape.kind))
        places = [
            np.array(body.pose.position) + rotated(body.pose.wxyz, np.array(shape.pose.position)) for shape in order
        ]
        np.testing.assert_allclose(found.get(body.name, []), places, atol=1e-9)


def test_a_recording_that_was_cut_off_is_read_without_them(tmp_path):
    """A rig that runs in Python has them too."""
    run = load_rig(ROOT / "rigs/two_link.yaml").run(duration=2.2, record=tmp_path / "a.mcap")
    whole = (tmp_path / "a.mcap").read_bytes()
    (tmp_path / "cut.mcap").write_bytes(whole[: int(0.9 * len(whole))])
    cut = open_recording(tmp_path / "cut.mcap")
    assert cut.signals == run.signals and 1000 < len(cut.t) < len(run.t)
    np.testing.assert_array_equal(np.asarray(cut.values), run.values[: len(cut.t)])
    assert len(of_topic(foxglove_messages(tmp_path / "a.mcap"), "/tf")) == 111
    load_rig(ROOT / "rigs/two_link.yaml", interpret=True).run(duration=0.04, record=tmp_path / "b.mcap")
    assert len(of_topic(foxglove_messages(tmp_path / "b.mcap"), "/tf")) == 3


def three(vector):
    return vector.x, vector.y, vector.z
