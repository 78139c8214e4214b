"""From the messages of a stream to channels of Foxglove: the topics that a recording of the run has."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.apps.foxglove.protocol import StatusLevel
from cosim.core.access.curve import is_local
from cosim.core.errors import InputError
from cosim.core.recordings.sample_encoding import JsonSamples, topics_of
from cosim.core.recordings.topics import JSON_TOPICS, LOG_LEVELS, LOG_TOPIC, log_message
from cosim.execution.timing.privileges import allowed_cpus, move_process_off
from cosim.output.client import Sample, Subscriber
from cosim.output.view3d.drawing import read_drawing
from cosim.output.view3d.motion import TOPICS as VIEW_TOPICS
from cosim.output.view3d.motion import Motion, ViewMessage
from cosim.output.view3d.schemas import schema_of

if TYPE_CHECKING:
    from cosim.apps.foxglove.parameters import RunParameters
    from cosim.apps.foxglove.server import Channel, FoxgloveServer
    from cosim.output.stream.reading import PublishedSchema

SAMPLE_TIMEOUT = 0.1  # s for a sample, at most
STANDING = {"/scene", "/tf_static"}
GONE_TIMEOUT = 5.0  # s without a schema, which comes every second, after which the run is gone
NOTHING, NO_VIEW = "nothing", "view"  # numbers of statuses


class Bridge:
    """One run after another at the address of the subscriber."""

    def __init__(self, subscriber: Subscriber, server: FoxgloveServer, parameters: RunParameters) -> None:
        self._subscriber, self._server, self._parameters = subscriber, server, parameters
        parameters.report, parameters.withdraw = server.publish_status, server.remove_status
        self._schema: PublishedSchema | None = None
        self._run: BridgedRun | None = None
        self._heard, self._gone = time.monotonic(), False
        self._cpus = allowed_cpus()

    @property
    def began(self) -> bool:
        """Whether a run has been heard of."""
        return self._schema is not None

    def step(self) -> None:
        """Pass on what comes within SAMPLE_TIMEOUT."""
        sample = self._subscriber.receive(SAMPLE_TIMEOUT)
        if self._subscriber.schema is not self._schema:
            self._schema, self._heard = self._subscriber.schema, time.monotonic()
            self._learn(self._subscriber.schema)
        self._watch()
        if self._run is None:
            return
        while self._subscriber.events:
            self._run.log(self._subscriber.events.popleft())
        if self._server.take_subscribed() & STANDING:
            self._run.show_standing()
        if sample is not None:
            self._run.add(sample)

    def _learn(self, schema: PublishedSchema | None) -> None:
        assert schema is not None
        new = self._parameters.learn(schema)  # first: a client may set them as soon as there are channels
        if self._run is None or not self._run.is_of(schema):
            if self._run is not None:
                self._run.close()
                self._server.clear_session()
            if is_local(self._subscriber.address):
                move_process_off(schema["cpu"], self._cpus)
            self._run = BridgedRun(schema, self._server)
            self._server.remove_status([NO_VIEW])
            if self._run.note:
                self._server.publish_status(self._run.note, StatusLevel.WARNING, NO_VIEW)
        if new:
            self._server.publish_parameter_values(new)

    def _watch(self) -> None:
        """State when nothing comes any more, and withdraw it when something does."""
        ended = self._schema is not None and self._schema["state"] == "ended"
        gone = time.monotonic() - self._heard > GONE_TIMEOUT and not ended
        if gone and not self._gone:
            self._server.publish_status("nothing comes from the run any more", StatusLevel.WARNING, NOTHING)
        if self._gone and not gone:
            self._server.remove_status([NOTHING])
        self._gone = gone


class BridgedRun:
    """The channels of one run. note: why its mechanism is not shown, empty if it is."""

    def __init__(self, schema: PublishedSchema, server: FoxgloveServer) -> None:
        self._about = _identity(schema)
        self._names, self.note = list(schema["signals"]), ""
        topics = topics_of(list(schema["signals"].items()))
        self._fields = [[name for name, _, _ in topic.fields] for topic in topics]
        self._columns = [[column for _, _, column in topic.fields] for topic in topics]
        self._groups = [
            _channel(topic.name, (topic.schema, topic.language, topic.text), server, dict(topic.metadata))
            for topic in JsonSamples(topics).topics()
        ]
        self._log = _channel(LOG_TOPIC, _json_schema(LOG_TOPIC), server)
        self._motion = self._motion_of(schema)
        self._view = {
            topic: _channel(topic, _protobuf_schema(message), server)
            for topic, message in VIEW_TOPICS.items()
            if self._motion is not None
        }

    def is_of(self, schema: PublishedSchema) -> bool:
        return self._about == _identity(schema)

    def add(self, sample: Sample) -> None:
        from orjson import dumps

        stamp_ns = round(sample.timestamp * 1e9)
        row = np.array([sample.values.get(name, np.nan) for name in self._names])
        values = [value if np.isfinite(value) else None for value in row.tolist()]
        for channel, fields, columns in zip(self._groups, self._fields, self._columns, strict=True):
            content = dict(zip(fields, (values[column] for column in columns), strict=True))
            channel.log(dumps(content), log_time=stamp_ns)
        if self._motion is not None:
            stamps, times = np.array([stamp_ns]), np.array([round(sample.t * 1e9)])
            for message in self._motion.moving(stamps, times, row[None]):
                self._show(message, stamp_ns)

    def log(self, event: Mapping[str, Any]) -> None:
        from orjson import dumps

        stamp_ns = round(event["timestamp"] * 1e9)
        self._log.log(dumps(log_message(stamp_ns, event["event"], LOG_LEVELS[event["level"]])), log_time=stamp_ns)

    def show_standing(self) -> None:
        """The shapes, for a viewer that has come."""
        stamp_ns = time.time_ns()
        if self._motion is not None:
            for message in self._motion.standing(stamp_ns, 0):
                self._show(message, stamp_ns)

    def close(self) -> None:
        for channel in (*self._groups, self._log, *self._view.values()):
            channel.close()

    def _show(self, message: ViewMessage, stamp_ns: int) -> None:
        self._view[message.topic].log(message.data, log_time=stamp_ns)

    def _motion_of(self, schema: PublishedSchema) -> Motion | None:
        """Of the mechanism in the schema."""
        try:
            drawing = read_drawing(schema["drawing"], schema["rig"])
        except InputError as error:
            self.note = f"the mechanism is not shown: {error}"
            return None
        view = drawing.view(tuple(schema["joints"]), self._names, schema["rate"])
        if view is None:
            self.note = "the mechanism is not shown: the stream has no positions; publish */position too"
            return None
        self.note = "; ".join(f"the mechanism in 3D: {note}" for note in drawing.scene.notes)
        return Motion(view)


def _identity(schema: PublishedSchema) -> tuple[Any, ...]:
    return schema["rig"], schema["path"], schema["pid"], schema["signals"]


def _json_schema(topic: str) -> tuple[str, str, bytes]:
    from orjson import dumps

    return JSON_TOPICS[topic]["title"], "jsonschema", dumps(JSON_TOPICS[topic])


def _protobuf_schema(message: str) -> tuple[str, str, bytes]:
    name, data = schema_of(message)
    return name, "protobuf", data


def _channel(
    topic: str, schema: tuple[str, str, bytes], server: FoxgloveServer, metadata: dict[str, str] | None = None
) -> Channel:
    return server.channel(topic, "json" if schema[1] == "jsonschema" else "protobuf", schema, metadata)
