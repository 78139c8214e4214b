"""A message of another program as rows of a table.

`sensor_msgs/JointState`, and whatever else has a list `name` beside lists of as many numbers, gives columns
`<joint>/<field>`; a `trajectory_msgs/JointTrajectory` has its points as rows; other messages have a column for each
number in them, `<path>/<field>`.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cosim.core.errors import InputError

if TYPE_CHECKING:
    from mcap.records import Channel, Schema

MOST_ELEMENTS = 64  # of a list of numbers in a message
DEPTH = 8  # of messages in messages
FIELDS = {"positions": "position", "velocities": "velocity", "accelerations": "acceleration", "efforts": "effort"}
NAMES = ("name", "names", "joint_names")
STAMPS = ("stamp", "timestamp", "time")
# of each encoding: the module that decodes it, and what installs it
DECODERS = {
    "cdr": ("mcap_ros2.decoder", '"cosim[logs]"'),
    "protobuf": ("mcap_protobuf.decoder", '"cosim[logs]"'),
    "ros1": ("mcap_ros1.decoder", "mcap-ros1-support"),
}
Decode = Callable[[bytes], Any]


class MessageRow(NamedTuple):
    """numbers: by column; stamp: the time in the message [ns], 0 without one, None of the point of a trajectory, whose
    time `t` [s] is in its numbers."""

    numbers: dict[str, float]
    stamp: int | None


def decoder(path: Path, channel: Channel, schema: Schema | None) -> Decode:
    """Raises InputError for an encoding that is not known, needs a package, or lacks a schema."""
    encoding, topic = channel.message_encoding, channel.topic
    if encoding == "json":
        return json.loads
    if encoding not in DECODERS:
        raise InputError(f"topic '{topic}' is in '{encoding}'; give JSON, Protobuf or CDR", str(path))
    module, package = DECODERS[encoding]
    try:
        factory = import_module(module).DecoderFactory
    except ImportError:
        what = f"topic '{topic}' is in {encoding}, which needs another package"
        raise InputError(f"{what}; run 'pip install {package}'", str(path)) from None
    try:
        decode = factory().decoder_for(encoding, schema)
    except Exception as error:  # of the package, for whatever a schema may be
        raise InputError(f"the schema of topic '{topic}' cannot be read: {_words(error)}", str(path)) from None
    if decode is None:
        raise InputError(f"topic '{topic}' has no schema for {encoding}; record it with one", str(path))
    return decode


def rows_of(path: Path, topic: str, number: int, decode: Decode, data: bytes) -> list[MessageRow]:
    """Of one message. Raises InputError for one that cannot be decoded."""
    try:
        return list(_rows(decode(data)))
    except Exception as error:  # of the package, for whatever bytes there may be
        what = f"message {number} of topic '{topic}' cannot be decoded: {_words(error)}"
        raise InputError(f"{what}; record it again", str(path)) from None


def _words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _rows(message: Any) -> Iterator[MessageRow]:
    fields = _fields(message)
    stamp = next((_nanoseconds(fields[name]) for name in STAMPS if name in fields), 0)
    stamp = _nanoseconds(_fields(fields.get("header")).get("stamp")) or stamp
    joints = next(([str(name) for name in fields[key]] for key in NAMES if _is_list(fields.get(key))), None)
    if joints is not None and _is_list(fields.get("points")):
        for point in fields["points"]:
            of = _fields(point)
            t = 1e-9 * _nanoseconds(of.get("time_from_start"))
            yield MessageRow({"t": t, **dict(_of_joints(of, joints))}, None)
    elif joints is not None:
        yield MessageRow(dict(_of_joints(fields, joints)), stamp)
    else:
        leaves = {name: value for name, value in _leaves(fields, "", 0) if not name.startswith("header/")}
        yield MessageRow(leaves, stamp)


def _of_joints(fields: Mapping[str, Any], joints: Sequence[str]) -> Iterator[tuple[str, float]]:
    for name, values in fields.items():
        if _is_list(values) and len(values) == len(joints) and name not in NAMES:
            for joint, value in zip(joints, values, strict=True):
                if isinstance(value, Real):
                    yield f"{joint}/{FIELDS.get(name, name)}", float(value)


def _leaves(fields: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, float]]:
    """(path/field, number)"""
    for name, value in fields.items():
        at = f"{path}{name}"
        if isinstance(value, Real):
            yield at, float(value)
        elif _is_list(value):
            for k, item in enumerate(list(value)[:MOST_ELEMENTS]):
                if isinstance(item, Real):
                    yield f"{at}[{k}]", float(item)
                elif depth < DEPTH:
                    yield from _leaves(_fields(item), f"{at}[{k}]/", depth + 1)
        elif depth < DEPTH:
            yield from _leaves(_fields(value), f"{at}/", depth + 1)


def _is_list(value: Any) -> bool:
    """Repeated fields of Protobuf are of a type of their own."""
    return isinstance(value, (list, tuple, array, np.ndarray)) or type(value).__name__.startswith("Repeated")


def _fields(message: Any) -> Mapping[str, Any]:
    """Of a message of any of the decoders; empty for what is none."""
    if hasattr(message, "DESCRIPTOR"):  # of which some are a Mapping too, in part
        return {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}
    if isinstance(message, Mapping):
        return {str(name): value for name, value in message.items()}
    if message is None or isinstance(message, (str, bytes, Real)):
        return {}
    slots = getattr(type(message), "__slots__", ()) or getattr(message, "__dict__", ())
    return {name.lstrip("_"): getattr(message, name) for name in slots if not callable(getattr(message, name))}


def _nanoseconds(stamp: Any) -> int:
    """Of a time or a duration in two numbers; 0 for what is none."""
    fields = _fields(stamp)
    parts = ("sec", "secs", "seconds"), ("nanosec", "nsec", "nsecs", "nanos")
    whole, fraction = (next((int(fields[name]) for name in names if name in fields), 0) for names in parts)
    return 1_000_000_000 * whole + fraction
