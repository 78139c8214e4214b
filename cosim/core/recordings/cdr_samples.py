"""The samples of a recording as messages of ROS 2 in CDR.

Every topic has a message of its own, with a time and a `float64` for each signal; its text names the signals beside the
fields, which may not have their names. `/joint_states` has the joints together, as `sensor_msgs/JointState`, and
`/wrenches/<joint>` what a joint transmits, as `geometry_msgs/WrenchStamped`, where all of it is among the signals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cosim.core.recordings.cdr import STAMP, CdrPattern, CdrWriter, stamps
from cosim.core.recordings.ros_messages import (
    PACKAGE,
    definition,
    field_name,
    message_name,
    schema_name,
    text_of,
    unique,
)
from cosim.core.recordings.sample_encoding import (
    MESSAGE,
    MESSAGE_HEAD,
    RIG_GROUPS,
    EncodedTicks,
    Numbers,
    RecordedTopic,
    Topic,
)

JOINT_STATES = "/joint_states"
ENCODING, SCHEMA_ENCODING = "cdr", "ros2msg"
WRENCHES = "/wrenches/"
_SIGNALS = ("position", "velocity", "effort")  # of JointState
_WRENCH = tuple(f"{part}_{axis}" for part in ("force", "moment") for axis in "xyz")
_FIELD = re.compile(rb"^float64 \S+ # (.*) \[[^\]]*\]$", re.MULTILINE)
MARK = f"{PACKAGE}/msg/"  # of the messages that hold samples


class CdrSamples:
    """See the module. Numbers that are not finite are stored as they are."""

    def __init__(self, topics: Sequence[Topic], numbers: Numbers = "float64") -> None:
        """numbers: of no use, those of ROS 2 are `float64`."""
        self._topics = topics
        named = [(topic.group, {name: at for name, _, at in topic.fields}) for topic in topics]
        self._standard = [*_joint_states(named), *_wrenches(named)]
        patterns = [_message(topic) for topic in topics] + [each.pattern for each in self._standard]
        orders = [[column for _, _, column in topic.fields] for topic in topics]
        orders += [each.columns for each in self._standard]
        self._layout = np.dtype([(str(k), _record(pattern)) for k, pattern in enumerate(patterns)])
        self._patterns, self._orders = patterns, [np.array(order, dtype=np.intp) for order in orders]
        records = []
        for k, pattern in enumerate(patterns):
            record = MESSAGE_HEAD.pack(MESSAGE, MESSAGE_HEAD.size - 9 + len(pattern.data), k + 1, 0, 0, 0)
            records.append(record + pattern.data)
        constant = np.frombuffer(b"".join(records), self._layout)
        self._constant, self._ticks = constant, np.empty(0, self._layout)
        self._begins = np.cumsum([0, *map(len, records[:-1])])

    def topics(self) -> list[RecordedTopic]:
        names = unique([message_name(topic.group) for topic in self._topics])
        found = [
            RecordedTopic(topic.name, f"{PACKAGE}/msg/{name}", SCHEMA_ENCODING, _text(topic), ENCODING, topic.units)
            for name, topic in zip(names, self._topics, strict=True)
        ]
        for each in self._standard:
            schema = schema_name(each.message), SCHEMA_ENCODING, definition(each.message)
            found.append(RecordedTopic(each.topic, *schema, ENCODING))
        return found

    def encode(self, log_ns: np.ndarray, t_ns: np.ndarray, rows: np.ndarray) -> EncodedTicks:
        k = len(rows)
        if len(self._ticks) < k:
            self._ticks = np.empty(k, self._layout)
        ticks = self._ticks[:k]
        ticks.view(np.uint8).reshape(k, -1)[:] = self._constant.view(np.uint8)
        times = stamps(log_ns)
        for number, (pattern, order) in enumerate(zip(self._patterns, self._orders, strict=True)):
            message, begin = ticks[str(number)], 0
            message["log"], message["publish"], message["stamp"] = log_ns, t_ns, times
            for run, (_, count) in enumerate(pattern.doubles):
                message[f"run{run}"] = rows[:, order[begin : begin + count]]
                begin += count
        ends = self._layout.itemsize * np.arange(1, k + 1)
        return EncodedTicks(ticks.view(np.uint8), (ends - self._layout.itemsize)[:, None] + self._begins, ends)


def signals_of(schema: bytes) -> tuple[str, ...]:
    """The signals that the text of a message names, in the order of its fields."""
    return tuple(name.decode() for name in _FIELD.findall(schema))


def places_of(fields: int) -> np.ndarray:
    """(fields,) places of the values in the record of a message with so many."""
    pattern = CdrWriter().stamp().open_values(fields).pattern
    return MESSAGE_HEAD.size + pattern.doubles[0].place + 8 * np.arange(fields)


def _message(topic: Topic) -> CdrPattern:
    return CdrWriter().stamp().open_values(len(topic.fields)).pattern


def _text(topic: Topic) -> bytes:
    _, *fields = unique(["stamp", *(field_name(name) for name, _, _ in topic.fields)])
    named = zip(fields, topic.fields, strict=True)
    return text_of(
        ["builtin_interfaces/Time stamp", *(f"float64 {field} # {name} [{unit}]" for field, (name, unit, _) in named)]
    )


class _Standard(NamedTuple):
    """A topic with a message that others define. columns: of its numbers."""

    topic: str
    message: str
    pattern: CdrPattern
    columns: list[int]


def _joint_states(topics: Sequence[tuple[str, dict[str, int]]]) -> Iterator[_Standard]:
    """Of the joints among (name, columns of its signals). A list is empty where a joint lacks the signal."""
    joints = [(name, columns) for name, columns in topics if name not in RIG_GROUPS and "position" in columns]
    if not joints:
        return
    message, order = CdrWriter().header().texts([name for name, _ in joints]), list[int]()
    for signal in _SIGNALS:
        columns = [columns.get(signal) for _, columns in joints]
        whole = [column for column in columns if column is not None] if None not in columns else []
        message.whole(len(whole)).open_values(len(whole))
        order += whole
    yield _Standard(JOINT_STATES, "sensor_msgs/JointState", message.pattern, order)


def _wrenches(topics: Sequence[tuple[str, dict[str, int]]]) -> Iterator[_Standard]:
    """Likewise; a wrench has the name of its joint for its frame."""
    for name, columns in topics:
        if columns.keys() >= set(_WRENCH):
            pattern = CdrWriter().header(name).open_values(len(_WRENCH)).pattern
            order = [columns[signal] for signal in _WRENCH]
            yield _Standard(WRENCHES + name, "geometry_msgs/WrenchStamped", pattern, order)


def _record(pattern: CdrPattern) -> np.dtype:
    """The record of a message in MCAP."""
    head = MESSAGE_HEAD.size
    parts: dict[str, Any] = {"log": ("<u8", head - 16), "publish": ("<u8", head - 8)}
    (stamp,) = pattern.stamps
    parts["stamp"] = STAMP, head + stamp
    for run, (place, count) in enumerate(pattern.doubles):
        parts[f"run{run}"] = ("<f8", (count,)), head + place
    return np.dtype(
        {
            "names": list(parts),
            "formats": [kind for kind, _ in parts.values()],
            "offsets": [offset for _, offset in parts.values()],
            "itemsize": head + len(pattern.data),
        }
    )
