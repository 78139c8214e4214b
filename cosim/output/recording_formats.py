"""The formats of recordings: which topics one has beside its samples, and their messages.

`protobuf` and `json` have events and changes in JSON and the mechanism in 3D as messages of Foxglove; `ros2` has the
messages of ROS 2 for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from cosim.core.errors import InputError
from cosim.core.recordings.cdr import CdrWriter
from cosim.core.recordings.cdr_samples import ENCODING, SCHEMA_ENCODING, CdrSamples
from cosim.core.recordings.ros_messages import PACKAGE, definition, schema_name
from cosim.core.recordings.sample_encoding import (
    EncodedTicks,
    Encoding,
    JsonSamples,
    Numbers,
    ProtobufSamples,
    RecordedTopic,
    Topic,
)
from cosim.core.recordings.topics import (
    CHANGES_TOPIC,
    JSON_TOPICS,
    LOG_LEVELS,
    LOG_TOPIC,
    ROS_LOG_LEVELS,
    ROS_LOG_TOPIC,
    log_message,
)
from cosim.core.types import Level
from cosim.output.traffic_messages import BusChannel, schemas
from cosim.output.view3d.motion import TOPICS as VIEW_TOPICS
from cosim.output.view3d.motion import Motion, ViewMessage
from cosim.output.view3d.ros_motion import ROS_VIEW_TOPICS, RosMotion
from cosim.output.view3d.schemas import schema_of
from cosim.output.view3d.view import View

DIAGNOSTICS = "/diagnostics"
DIAGNOSTIC_LEVELS: dict[Level, int] = {"info": 0, "warning": 1, "error": 2}
PROGRAM = "cosim"
Message = tuple[str, bytes]  # topic, content


class Samples(Protocol):
    def topics(self) -> list[RecordedTopic]: ...
    def encode(self, log_ns: np.ndarray, t_ns: np.ndarray, rows: np.ndarray) -> EncodedTicks: ...


class ViewMotion(Protocol):
    def standing(self, stamp_ns: int, t_ns: int) -> Iterator[ViewMessage]: ...
    def moving(self, stamps_ns: np.ndarray, t_ns: np.ndarray, rows: np.ndarray) -> Iterator[ViewMessage]: ...


@dataclass(frozen=True)
class RecordingFormat(ABC):
    """profile: of the file; samples: whose topics are the first; motion: of the mechanism in 3D, None without."""

    samples: Samples
    motion: ViewMotion | None
    profile: ClassVar[str]

    @cached_property
    def topics(self) -> list[RecordedTopic]:
        """All of them."""
        return [*self.samples.topics(), *self._others()]

    @abstractmethod
    def _others(self) -> Iterator[RecordedTopic]: ...

    @abstractmethod
    def event(self, log_ns: int, text: str, level: Level) -> Iterator[Message]: ...

    @abstractmethod
    def change(self, tick: int, name: str, value: Sequence[float]) -> Iterator[Message]: ...


def recording_format(
    encoding: Encoding, topics: Sequence[Topic], numbers: Numbers, view: View | None, buses: Sequence[BusChannel]
) -> RecordingFormat:
    """Raises InputError for what the format does not have."""
    if encoding == "ros2":
        if buses:
            raise InputError("the traffic of buses has no messages in ROS 2; leave one out", "recording.encoding")
        return _RosFormat(CdrSamples(topics, numbers), None if view is None else RosMotion(view))
    samples = ProtobufSamples(topics, numbers) if encoding == "protobuf" else JsonSamples(topics, numbers)
    return _FoxgloveFormat(samples, None if view is None else Motion(view), tuple(buses))


@dataclass(frozen=True)
class _FoxgloveFormat(RecordingFormat):
    buses: tuple[BusChannel, ...]
    profile = ""

    def _others(self) -> Iterator[RecordedTopic]:
        from orjson import dumps

        for topic, schema in JSON_TOPICS.items():
            yield RecordedTopic(topic, schema["title"], "jsonschema", dumps(schema), "json")
        if self.motion is not None:
            for topic, message in VIEW_TOPICS.items():
                name, text = schema_of(message)
                yield RecordedTopic(topic, name, "protobuf", text, "protobuf")
        for bus in self.buses:
            for topic, (name, text) in zip(bus.topics, schemas(), strict=True):
                yield RecordedTopic(topic, name, "protobuf", text, "protobuf", bus.metadata)

    def event(self, log_ns: int, text: str, level: Level) -> Iterator[Message]:
        from orjson import dumps

        yield LOG_TOPIC, dumps(log_message(log_ns, text, LOG_LEVELS[level]))

    def change(self, tick: int, name: str, value: Sequence[float]) -> Iterator[Message]:
        from orjson import dumps

        yield CHANGES_TOPIC, dumps({"tick": tick, "name": name, "value": list(value)})


class _RosFormat(RecordingFormat):
    profile = "ros2"

    def _others(self) -> Iterator[RecordedTopic]:
        own = {
            ROS_LOG_TOPIC: "rcl_interfaces/Log",
            DIAGNOSTICS: "diagnostic_msgs/DiagnosticArray",
            CHANGES_TOPIC: f"{PACKAGE}/Change",
        }
        for topic, message in (own | ({} if self.motion is None else ROS_VIEW_TOPICS)).items():
            yield RecordedTopic(topic, schema_name(message), SCHEMA_ENCODING, definition(message), ENCODING)

    def event(self, log_ns: int, text: str, level: Level) -> Iterator[Message]:
        log = (
            CdrWriter()
            .stamp(log_ns)
            .whole(ROS_LOG_LEVELS[level], 1)
            .text(PROGRAM)
            .text(text)
            .text("")
            .text("")
            .whole(0)
        )
        yield ROS_LOG_TOPIC, log.message
        status = CdrWriter().header("", log_ns).whole(1).whole(DIAGNOSTIC_LEVELS[level], 1)
        yield DIAGNOSTICS, status.text(PROGRAM).text(text).text("").whole(0).message

    def change(self, tick: int, name: str, value: Sequence[float]) -> Iterator[Message]:
        yield CHANGES_TOPIC, CdrWriter().whole(tick, 8).text(name).whole(len(value)).values(value).message
