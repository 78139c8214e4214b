"""Messages with Foxglove's schemas as the published classes of foxglove-schemas-protobuf read them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mcap.reader import make_reader

from cosim.output.scene.scene import rotated

FOXGLOVE = "foxglove."


class FoxgloveMessage(NamedTuple):
    """log_ns: since 1970; t_ns: in the run."""

    topic: str
    log_ns: int
    t_ns: int
    content: Any


def message_class(name: str) -> Any:
    return getattr(import_module(f"foxglove_schemas_protobuf.{name}_pb2"), name)


def foxglove_messages(path: Path) -> list[FoxgloveMessage]:
    """The Protobuf messages of a recording with a schema of Foxglove."""
    with open(path, "rb") as file:
        return [
            FoxgloveMessage(channel.topic, message.log_time, message.publish_time, _read(schema.name, message.data))
            for schema, channel, message in make_reader(file, validate_crcs=True).iter_messages()
            if schema.name.startswith(FOXGLOVE) and channel.message_encoding == "protobuf"
        ]


def _read(schema: str, data: bytes) -> Any:
    message = message_class(schema.removeprefix(FOXGLOVE))()
    message.ParseFromString(data)
    return message


def matrix(transform: Any) -> np.ndarray:
    """The homogeneous matrix (4, 4) of a FrameTransform."""
    move, turn = transform.translation, transform.rotation
    wxyz = turn.w, turn.x, turn.y, turn.z
    found = np.eye(4)
    found[:3, :3] = np.column_stack([rotated(wxyz, axis) for axis in np.eye(3)])
    found[:3, 3] = move.x, move.y, move.z
    return found
