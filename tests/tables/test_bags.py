"""MCAP of other programs, by their own writers: CDR of ROS 2, JSON and Protobuf, whole, cut, of several programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from mcap.writer import CompressionType

from cosim.core.tables import open_table
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.joint_table import JointTable, TableFile, read_joint_table
from cosim.core.tables.log import JointLog, MeasuredColumn, read_log
from cosim.core.tables.options import TableOptions
from tests.kit.refusals import refusal
from tests.tables.bags import (
    ARRAY,
    STEP,
    T0,
    TRAJECTORY,
    joint_state,
    stamp_of,
    write_bag,
    write_cdr,
    write_json,
    write_protobuf,
)

ROWS = 50
ARM, GRIPPER = ("shoulder", "elbow"), ("finger",)
MOTION = np.column_stack([np.sin(np.arange(ROWS) / 7.0), np.cos(np.arange(ROWS) / 9.0)])
SAID = "times since 1970 in s, from 2024-03-05 10:11:12 UTC; the first row is taken as t = 0"


def waypoints(path: Path, joints: tuple[str, ...] = ARM, **keys: Any) -> JointTable:
    return read_joint_table(TableFile(file=path.name, **keys), path.parent, joints, "position")


def log(path: Path, joints: tuple[str, ...] = ARM, quantity: str = "position") -> JointLog:
    of = NamedColumns.of(open_table(path), joints, TableOptions())
    columns = of.required(joints, quantity)
    return read_log(of, [MeasuredColumn(joint, quantity, k, "rad") for joint, k in zip(joints, columns, strict=True)])


def states(stamped: bool = True) -> list[tuple[str, int, dict[str, Any]]]:
    """Of the joints in the order of another program, as it publishes them."""
    return [
        ("/joint_states", t, joint_state(t if stamped else 0, ARM[::-1], [float(x) for x in row[::-1]]))
        for t, row in zip(T0 + STEP * np.arange(ROWS), MOTION, strict=True)
        for t in [int(t)]
    ]


def assert_motion(table: JointTable | JointLog) -> None:
    np.testing.assert_array_equal(table.values, MOTION)
    np.testing.assert_allclose(table.t, STEP * 1e-9 * np.arange(ROWS), rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("compression", [CompressionType.ZSTD, CompressionType.LZ4, CompressionType.NONE])
def test_joint_states_of_ros_2(compression: CompressionType, tmp_path: Path) -> None:
    path = write_cdr(tmp_path / "a.mcap", states(), compression=compression)
    table = waypoints(path)
    assert_motion(table)
    assert table.notes == (SAID,) == log(path).notes
    assert_motion(log(path))


def test_a_bag_of_rosbags(tmp_path: Path) -> None:
    assert_motion(waypoints(write_bag(tmp_path / "bag", ARM, MOTION)))


def test_stamps_of_zero_are_no_times(tmp_path: Path) -> None:
    assert_motion(waypoints(write_bag(tmp_path / "bag", ARM, MOTION, header=False)))
    some = states()
    some[3] = ("/joint_states", some[3][1], joint_state(0, ARM[::-1], [float(x) for x in MOTION[3, ::-1]]))
    table = waypoints(write_cdr(tmp_path / "some.mcap", some))
    assert_motion(table)
    assert table.notes == ("some messages have no time; all times are those of the log", SAID)


def test_two_publishers_on_one_topic(tmp_path: Path) -> None:
    """The rows of a table are those of the joints that are asked for, though the others are more."""
    other = [
        ("/joint_states", t + shift, joint_state(t + shift, GRIPPER, [0.001 * (t - T0) / STEP]))
        for _, t, _ in states()
        for shift in (STEP // 4, STEP // 2)
    ]
    path = write_cdr(tmp_path / "two.mcap", sorted([*states(), *other], key=lambda message: message[1]))
    left = f"left out {2 * ROWS} of {3 * ROWS} messages, which lack some of the columns"
    table = waypoints(path)
    assert_motion(table)
    assert table.notes == (left, SAID)
    assert len(waypoints(path, GRIPPER).t) == 2 * ROWS
    assert refusal(waypoints, path, (*ARM, *GRIPPER)).endswith("together; give columns of one message")


def test_topics_are_chosen_by_their_joints_or_by_name(tmp_path: Path, said: Any) -> None:
    second = [("/left/joint_states", t, message) for _, t, message in states()]
    path = write_cdr(tmp_path / "two.mcap", [*states(), *second])
    said(refusal(waypoints, path))
    said(refusal(waypoints, path, topic="/joint_state"))
    assert_motion(waypoints(path, topic="/left/joint_states"))


def test_a_trajectory_is_a_table(tmp_path: Path, said: Any) -> None:
    points = [
        {
            "positions": list(map(float, row)), "velocities": [], "accelerations": [], "effort": [],
            "time_from_start": stamp_of(k * STEP),
        }
        for k, row in enumerate(MOTION)
    ]  # fmt: skip
    message = {"header": {"stamp": stamp_of(0), "frame_id": ""}, "joint_names": list(ARM), "points": points}
    kind = "trajectory_msgs/msg/JointTrajectory"
    path = write_cdr(tmp_path / "plan.mcap", [("/plan", T0, message)], kind, TRAJECTORY)
    table = waypoints(path)
    assert_motion(table)
    assert table.notes == ()
    path = write_cdr(tmp_path / "plans.mcap", [("/plan", T0, message), ("/plan", T0 + STEP, message)], kind, TRAJECTORY)
    said(refusal(waypoints, path))


def test_an_array_of_numbers_is_named_by_the_user(tmp_path: Path, said: Any) -> None:
    layout = {"dim": [], "data_offset": 0}
    rows = [("/commands", T0 + k * STEP, {"layout": layout, "data": list(map(float, r))}) for k, r in enumerate(MOTION)]
    path = write_cdr(tmp_path / "array.mcap", rows, "std_msgs/msg/Float32MultiArray", ARRAY)
    said(refusal(waypoints, path))
    table = waypoints(path, columns={"shoulder": "data[0]", "elbow": "data[1]"})
    np.testing.assert_array_equal(table.values, MOTION.astype(np.float32))


def test_joint_states_in_json(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.mcap", states())
    assert_motion(waypoints(path))


def test_protobuf(tmp_path: Path) -> None:
    """A message that has its numbers in a list, of a schema that the file brings along."""
    rows = [ListValue(values=[Value(number_value=float(x)) for x in row]) for row in MOTION]
    path = write_protobuf(tmp_path / "a.mcap", [("/q", T0 + k * STEP, row) for k, row in enumerate(rows)])
    columns = {joint: f"values[{k}]/number_value" for k, joint in enumerate(ARM)}
    assert_motion(waypoints(path, columns=columns))
    times = [("/time", T0, Timestamp(seconds=k, nanos=5)) for k in range(3)]
    assert open_table(write_protobuf(tmp_path / "b.mcap", times)).names == ("t", "seconds", "nanos")


def test_a_map_of_protobuf_has_no_numbers(tmp_path: Path, said: Any) -> None:
    empty = Struct()
    said(refusal(waypoints, write_protobuf(tmp_path / "a.mcap", [("/map", T0, empty)])))


@pytest.mark.parametrize("part", [0.35, 0.6, 0.9, 0.99])
def test_a_bag_that_is_cut_off_says_so(part: float, tmp_path: Path) -> None:
    path = write_cdr(tmp_path / "a.mcap", states())
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    table = waypoints(path)
    count = len(table.t)
    assert 0 < count <= ROWS
    np.testing.assert_array_equal(table.values, MOTION[:count])
    assert table.notes[0].startswith(f"the file is cut off or damaged after its message {count}: ")


def test_a_chunk_that_is_damaged_is_said_though_the_summary_is_whole(tmp_path: Path) -> None:
    path = write_cdr(tmp_path / "a.mcap", states())
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 40] = bytes(40)
    path.write_bytes(data)
    try:
        notes = waypoints(path).notes
    except Exception as error:
        notes = (str(error),)
    assert any("damaged" in note or "cannot be decoded" in note for note in notes)


@pytest.mark.parametrize(
    "data", [b"\xff", b"[1, 2]", b"7", b"null", b"{", b'{"name": 5}', b'{"name": ["a"], "position": 3}']
)
def test_messages_without_sense(data: bytes, tmp_path: Path, said: Any) -> None:
    said(refusal(waypoints, write_json(tmp_path / "a.mcap", [("/joint_states", T0, data)])))


def test_a_message_of_cdr_that_is_cut(tmp_path: Path, said: Any) -> None:
    whole = write_cdr(tmp_path / "a.mcap", states(), compression=CompressionType.NONE)
    data = whole.read_bytes().replace(b"shoulder\0", b"\xff\xff\xff\xff\xff\xff\xff\xff\0", 1)
    whole.write_bytes(data)
    said(refusal(waypoints, whole), "damaged.*|decoded.*")


@pytest.mark.parametrize("package", ["mcap_ros2", "mcap_protobuf"])
def test_a_package_that_is_missing(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any) -> None:
    if package == "mcap_ros2":
        path = write_cdr(tmp_path / "a.mcap", states())
    else:
        path = write_protobuf(tmp_path / "a.mcap", [("/time", T0, Timestamp(seconds=1))])
    monkeypatch.setitem(sys.modules, f"{package}.decoder", None)
    said(refusal(waypoints, path))


def test_a_large_topic_beside_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only messages of the topic are decoded."""
    beside = [("/camera", t, {"pixels": [0.0] * 50}) for _, t, _ in states()]
    path = write_json(tmp_path / "a.mcap", [*states(), *beside])
    assert_motion(waypoints(path, topic="/joint_states"))
