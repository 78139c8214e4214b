"""The messages of ROS 2 that recordings have, as text in the language of `.msg` files
(https://design.ros2.org/articles/legacy_interface_definition.html)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

PACKAGE = "cosim_msgs"  # of the messages that are our own
SEPARATOR = "=" * 80
# name -> (type, field) …
FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "builtin_interfaces/Time": (("int32", "sec"), ("uint32", "nanosec")),
    "std_msgs/Header": (("builtin_interfaces/Time", "stamp"), ("string", "frame_id")),
    "sensor_msgs/JointState": (
        ("std_msgs/Header", "header"),
        ("string[]", "name"),
        ("float64[]", "position"),
        ("float64[]", "velocity"),
        ("float64[]", "effort"),
    ),
    "geometry_msgs/Vector3": (("float64", "x"), ("float64", "y"), ("float64", "z")),
    "geometry_msgs/Quaternion": (
        ("float64", "x 0"),
        ("float64", "y 0"),
        ("float64", "z 0"),
        ("float64", "w 1"),
    ),
    "geometry_msgs/Transform": (("geometry_msgs/Vector3", "translation"), ("geometry_msgs/Quaternion", "rotation")),
    "geometry_msgs/TransformStamped": (
        ("std_msgs/Header", "header"),
        ("string", "child_frame_id"),
        ("geometry_msgs/Transform", "transform"),
    ),
    "tf2_msgs/TFMessage": (("geometry_msgs/TransformStamped[]", "transforms"),),
    "geometry_msgs/Wrench": (("geometry_msgs/Vector3", "force"), ("geometry_msgs/Vector3", "torque")),
    "geometry_msgs/WrenchStamped": (("std_msgs/Header", "header"), ("geometry_msgs/Wrench", "wrench")),
    "rosgraph_msgs/Clock": (("builtin_interfaces/Time", "clock"),),
    "rcl_interfaces/Log": (
        ("builtin_interfaces/Time", "stamp"),
        ("uint8", "level"),
        ("string", "name"),
        ("string", "msg"),
        ("string", "file"),
        ("string", "function"),
        ("uint32", "line"),
    ),
    "diagnostic_msgs/KeyValue": (("string", "key"), ("string", "value")),
    "diagnostic_msgs/DiagnosticStatus": (
        ("byte", "level"),
        ("string", "name"),
        ("string", "message"),
        ("string", "hardware_id"),
        ("diagnostic_msgs/KeyValue[]", "values"),
    ),
    "diagnostic_msgs/DiagnosticArray": (
        ("std_msgs/Header", "header"),
        ("diagnostic_msgs/DiagnosticStatus[]", "status"),
    ),
    f"{PACKAGE}/Change": (("uint64", "tick"), ("string", "name"), ("float64[]", "value")),
}


def schema_name(message: str) -> str:
    """`package/msg/Name`"""
    package, _, name = message.partition("/")
    return f"{package}/msg/{name}"


def definition(message: str) -> bytes:
    """The text of a message, with the messages that are in it behind."""
    return text_of([f"{kind} {field}" for kind, field in FIELDS[message]])


def text_of(lines: Sequence[str]) -> bytes:
    """The text of a message with these fields, likewise."""
    parts = ["\n".join(lines)]
    for other in dict.fromkeys(_inner(lines)):
        own = "\n".join(f"{kind} {field}" for kind, field in FIELDS[other])
        parts.append(f"{SEPARATOR}\nMSG: {other}\n{own}")
    return ("\n".join(parts) + "\n").encode()


def _inner(lines: Sequence[str]) -> Iterator[str]:
    """The messages that fields are of, and in these."""
    for line in lines:
        kind = line.split()[0].removesuffix("[]")
        if kind in FIELDS:
            yield kind
            yield from _inner([f"{inner} {field}" for inner, field in FIELDS[kind]])


def message_name(text: str) -> str:
    """A name of a message: `upper_arm` is `UpperArm`."""
    words = re.findall(r"[A-Za-z0-9]+", text)
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"N{name}"


def field_name(text: str) -> str:
    """A name of a field: lower case, single underscores between words, a letter first."""
    name = re.sub(r"_+", "_", re.sub(r"[^a-z0-9]", "_", text.lower())).strip("_")
    return name if name[:1].isalpha() else f"n{name}"


def unique(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that came before."""
    found: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in found:
            candidate, number = f"{name}{number}", number + 1
        found.append(candidate)
    return found
