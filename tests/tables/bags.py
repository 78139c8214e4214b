"""Bags of ROS 2 and of other programs, written by their own writers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType
from mcap.writer import Writer as JsonWriter
from mcap_protobuf.writer import Writer as ProtobufWriter
from mcap_ros2.writer import Writer as RosWriter
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Bag
from rosbags.typesys import Stores, get_typestore

T0 = 1_709_633_472_000_000_000  # ns since 1970
STEP = 10_000_000  # ns
TIME = "MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
HEADER = f"MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n{80 * '='}\n{TIME}"
JOINT_STATE = f"""\
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{80 * "="}
{HEADER}"""
TRAJECTORY = f"""\
std_msgs/Header header
string[] joint_names
trajectory_msgs/JointTrajectoryPoint[] points
{80 * "="}
{HEADER}{80 * "="}
MSG: trajectory_msgs/JointTrajectoryPoint
float64[] positions
float64[] velocities
float64[] accelerations
float64[] effort
builtin_interfaces/Duration time_from_start
{80 * "="}
MSG: builtin_interfaces/Duration
int32 sec
uint32 nanosec
"""
ARRAY = f"""\
std_msgs/MultiArrayLayout layout
float32[] data
{80 * "="}
MSG: std_msgs/MultiArrayLayout
std_msgs/MultiArrayDimension[] dim
uint32 data_offset
{80 * "="}
MSG: std_msgs/MultiArrayDimension
string label
uint32 size
uint32 stride
"""


def stamp_of(t_ns: int) -> dict[str, int]:
    return {"sec": t_ns // 1_000_000_000, "nanosec": t_ns % 1_000_000_000}


def joint_state(
    t_ns: int, names: Sequence[str], position: Sequence[float], **others: Sequence[float]
) -> dict[str, Any]:
    header = {"stamp": stamp_of(t_ns), "frame_id": ""}
    return {"header": header, "name": names, "position": position, "velocity": [], "effort": [], **others}


def write_cdr(
    path: Path,
    messages: Iterable[tuple[str, int, dict[str, Any]]],
    kind: str = "sensor_msgs/msg/JointState",
    definition: str = JOINT_STATE,
    compression: CompressionType = CompressionType.ZSTD,
) -> Path:
    """messages: (topic, log time [ns], content)."""
    with path.open("wb") as file:
        writer = RosWriter(file, chunk_size=2000, compression=compression)
        schema = writer.register_msgdef(kind, definition)
        for topic, t_ns, message in messages:
            writer.write_message(topic, schema, message, log_time=t_ns, publish_time=t_ns)
        writer.finish()
    return path


def write_json(path: Path, messages: Iterable[tuple[str, int, Any]], kind: str = "JointState") -> Path:
    with path.open("wb") as file:
        writer = JsonWriter(file, compression=CompressionType.LZ4)
        writer.start()
        schema = writer.register_schema(kind, "jsonschema", b"{}")
        channels: dict[str, int] = {}
        for topic, t_ns, message in messages:
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, "json", schema)
            data = message if isinstance(message, bytes) else json.dumps(message).encode()
            writer.add_message(channels[topic], t_ns, data, t_ns)
        writer.finish()
    return path


def write_protobuf(path: Path, messages: Iterable[tuple[str, int, Any]]) -> Path:
    with path.open("wb") as file, ProtobufWriter(file) as writer:
        for topic, t_ns, message in messages:
            writer.write_message(topic, message, t_ns, t_ns)
    return path


def write_bag(folder: Path, names: Sequence[str], positions: np.ndarray, header: bool = True) -> Path:
    """A bag of ROS 2 in MCAP as `ros2 bag record` writes it, by rosbags; its file."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = store.types
    with Bag(folder, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        connection = bag.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=store)
        for k, row in enumerate(positions):
            t_ns = T0 + k * STEP
            time = kinds["builtin_interfaces/msg/Time"](**stamp_of(t_ns if header else 0))
            message = kinds["sensor_msgs/msg/JointState"](
                header=kinds["std_msgs/msg/Header"](stamp=time, frame_id=""),
                name=list(names),
                position=np.array(row),
                velocity=np.zeros(len(names)),
                effort=np.zeros(0),
            )
            bag.write(connection, t_ns, store.serialize_cdr(message, "sensor_msgs/msg/JointState"))
    (file,) = folder.glob("*.mcap")
    return file
