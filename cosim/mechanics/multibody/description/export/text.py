"""XML as text, and numbers and rotations in it that read back as they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from cosim.mechanics.multibody.coordinates import quaternion_of
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import Pose

LEVEL = 1e-12  # cosine of the pitch below which roll and yaw turn about the same axis


def element(tag: str, attributes: Mapping[str, str] | None = None, text: str = "") -> XmlElement:
    return XmlElement(tag, dict(attributes or {}), 0, text=text)


def add(parent: XmlElement, tag: str, attributes: Mapping[str, str] | None = None, text: str = "") -> XmlElement:
    child = element(tag, attributes, text)
    parent.children.append(child)
    return child


def xml_text(root: XmlElement) -> str:
    """The file of a root element."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    stack: list[tuple[XmlElement | str, int]] = [(root, 0)]
    while stack:
        item, depth = stack.pop()
        indent = "  " * depth
        if isinstance(item, str):
            lines.append(f"{indent}</{item}>")
            continue
        start = "".join([f"{indent}<{item.tag}", *(f" {key}={quoteattr(v)}" for key, v in item.attributes.items())])
        if item.children:
            lines.append(f"{start}>")
            stack.append((item.tag, depth))
            stack += [(child, depth + 1) for child in reversed(item.children)]
        elif item.text:
            lines.append(f"{start}>{escape(item.text)}</{item.tag}>")
        else:
            lines.append(f"{start}/>")
    return "\n".join([*lines, ""])


def number(value: float) -> str:
    """The shortest text that is read as this number."""
    value = float(value) + 0.0
    return repr(int(value)) if value == round(value) and abs(value) < 1e15 else repr(value)


def numbers(values: Iterable[float]) -> str:
    return " ".join(map(number, values))


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """(x, y, z, w) of length 1."""
    found = np.array(quaternion_of(rotation), dtype=float)
    return found / np.linalg.norm(found)


def roll_pitch_yaw(rotation: np.ndarray) -> tuple[float, float, float]:
    """R = Rz(yaw) Ry(pitch) Rx(roll), exact also near a pitch of 90°: the yaw first, then the rest of the rotation."""
    flat = math.hypot(rotation[0, 0], rotation[1, 0])
    yaw = math.atan2(rotation[1, 0], rotation[0, 0]) if flat > LEVEL else 0.0
    c, s = math.cos(yaw), math.sin(yaw)
    across = c * rotation[0] + s * rotation[1]  # rows of Rz(−yaw) R
    along = c * rotation[1] - s * rotation[0]
    return math.atan2(-along[2], along[1]), math.atan2(-rotation[2, 0], across[0]), yaw


def is_identity(pose: Pose) -> bool:
    return not pose.position.any() and np.array_equal(pose.rotation, np.eye(3))
