"""Tables in MCAP: recordings of this program, and topics of other ones with messages in JSON, Protobuf or CDR (ROS 2).

A message is a row. `sensor_msgs/JointState`, and whatever else has a list `name` beside lists of as many numbers, gives
columns `<joint>/<field>`; a `trajectory_msgs/JointTrajectory` has its points as rows; other messages have a column for
each number in them, `<path>/<field>`. Times are those of the header where it has one, else those of the log.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cosim.core.errors import InputError, did_you_mean, listed
from cosim.core.recordings.index import recordings_of
from cosim.core.recordings.reader import FOREIGN, RecordedSamples
from cosim.core.tables.arrays import NO_LINES, of_columns
from cosim.core.tables.table import Rows, Table

if TYPE_CHECKING:
    from mcap.records import Channel, Schema

MOST_ELEMENTS = 64  # of a list of numbers in a message
DEPTH = 8  # of messages in messages
FIELDS = {"positions": "position", "velocities": "velocity", "accelerations": "acceleration", "effort": "effort"}
NAMES = ("name", "names", "joint_names")
NEEDS = {"cdr": "mcap-ros2-support", "ros1": "mcap-ros1-support", "protobuf": "mcap-protobuf-support"}
Decode = Callable[[bytes], Any]


class _Topic(NamedTuple):
    channel: Channel
    schema: Schema | None

    @property
    def kind(self) -> str:
        """The last word of the type of its messages."""
        return "" if self.schema is None else self.schema.name.replace(".", "/").rpartition("/")[2]


def read_messages(path: Path, topic: str | None = None) -> Table:
    """topic: None for the only one that has joints, or the only one with numbers. Raises InputError."""
    try:
        samples = RecordedSamples(recordings_of(path))
    except InputError as error:
        if FOREIGN not in error.what:
            raise
    else:
        return _of_samples(path, samples)
    return _foreign(path, topic)


def _of_samples(path: Path, samples: RecordedSamples) -> Table:
    def read(chosen: Sequence[int]) -> Rows:
        columns = np.array([k - 1 for k in chosen if k], dtype=np.intp)
        values = np.empty((samples.count, len(chosen)))
        values[:, [n for n, k in enumerate(chosen) if k]] = samples.values(0, samples.count, columns)
        for n, k in enumerate(chosen):
            if not k:
                values[:, n] = samples.t[:]
        return Rows(values, NO_LINES)

    return Table(path, ("t", *samples.names), read, notes=tuple(samples.losses))


def _foreign(path: Path, wanted: str | None) -> Table:
    from mcap.exceptions import McapError
    from mcap.stream_reader import StreamReader

    topics: dict[int, _Topic] = {}
    schemas: dict[int, Schema] = {}
    messages: dict[int, list[tuple[int, bytes]]] = {}
    cut = ""
    with path.open("rb") as file:
        try:
            for record in StreamReader(file, record_size_limit=None).records:
                kind = type(record).__name__
                if kind == "Schema":
                    schemas[record.id] = record  # pyright: ignore
                elif kind == "Channel":
                    topics[record.id] = _Topic(record, schemas.get(record.schema_id))  # pyright: ignore
                elif kind == "Message":
                    messages.setdefault(record.channel_id, []).append((record.log_time, record.data))  # pyright: ignore
        except (McapError, ValueError, EOFError, OSError, KeyError) as error:
            cut = f"the file is cut off or damaged after its message {sum(map(len, messages.values()))}: {error}"
    chosen = _chosen(path, topics, messages, wanted)
    decode = _decoder(path, topics[chosen])
    rows = [row for log, data in messages[chosen] for row in _rows(decode(data), log)]
    kinds = Counter(tuple(row) for row in rows)
    if not rows:
        raise InputError(f"topic '{topics[chosen].channel.topic}' has no numbers; name another topic", str(path))
    names, count = kinds.most_common(1)[0]
    notes = [cut] if cut else []
    if other := len(rows) - count:
        fields = sorted({name for kind in kinds for name in kind} - set(names))
        what = f"left out {other} of {len(rows)} messages, of other fields"
        notes.append(what + (f" such as {listed(fields[:3])}" if fields else ""))
    alike = [row for row in rows if tuple(row) == names]
    columns = {name: np.array([row[name] for row in alike]) for name in names}
    table = of_columns(path, columns, {"t": "s"})
    return Table(path, table.names, table.read, table.units, notes=tuple(notes))


def _chosen(path: Path, topics: Mapping[int, _Topic], messages: Mapping[int, Any], wanted: str | None) -> int:
    """The channel of the topic."""
    filled = {number: topic for number, topic in topics.items() if number in messages}
    names = [topic.channel.topic for topic in filled.values()]
    if wanted is not None:
        found = [number for number, topic in filled.items() if topic.channel.topic == wanted]
        if not found:
            raise InputError(f"has no topic '{wanted}' with messages{did_you_mean(wanted, names)}", str(path))
        return found[0]
    if not filled:
        raise InputError("has no messages", str(path))
    joints = [n for n, topic in filled.items() if topic.kind in ("JointState", "JointTrajectory", "DynamicJointState")]
    candidates = joints or list(filled)
    if len(candidates) > 1:
        which = listed([filled[n].channel.topic for n in candidates][:10])
        raise InputError(f"has {len(candidates)} topics; name one by 'topic': {which}", str(path))
    return candidates[0]


def _decoder(path: Path, topic: _Topic) -> Decode:
    encoding = topic.channel.message_encoding
    if encoding == "json":
        return json.loads
    try:
        if encoding == "cdr":
            from mcap_ros2.decoder import DecoderFactory
        elif encoding == "protobuf":
            from mcap_protobuf.decoder import DecoderFactory
        elif encoding == "ros1":
            from mcap_ros1.decoder import DecoderFactory
        else:
            raise InputError(f"topic '{topic.channel.topic}' is in '{encoding}'; give JSON, Protobuf or CDR", str(path))
    except ImportError:
        what = f"topic '{topic.channel.topic}' is in {encoding}, which needs {NEEDS[encoding]}"
        raise InputError(f"{what}; run 'pip install {NEEDS[encoding]}'", str(path)) from None
    decode = DecoderFactory().decoder_for(encoding, topic.schema)
    if decode is None:
        raise InputError(f"topic '{topic.channel.topic}' has no schema for {encoding}; record it with one", str(path))
    return decode


# --- a message as rows -----------------------------------------------------------------------------


def _rows(message: Any, log_ns: int) -> Iterator[dict[str, float]]:
    """Column -> number, `t` first."""
    fields = _fields(message)
    stamp = _seconds(_fields(_fields(fields.get("header", {})).get("stamp", {})))
    t = stamp if stamp else log_ns * 1e-9
    joints = next(([str(name) for name in fields[key]] for key in NAMES if _is_list(fields.get(key))), None)
    if joints is not None and _is_list(fields.get("points")):
        for point in fields["points"]:
            of = _fields(point)
            yield {"t": _seconds(_fields(of.get("time_from_start", {}))), **dict(_of_joints(of, joints))}
        return
    row = {"t": t}
    if joints is not None:
        row |= dict(_of_joints(fields, joints))
    else:
        row |= {name: value for name, value in _leaves(fields, "", 0) if not name.startswith("header/")}
    yield row


def _of_joints(fields: Mapping[str, Any], joints: Sequence[str]) -> Iterator[tuple[str, float]]:
    for name, values in fields.items():
        if _is_list(values) and len(values) == len(joints) and name not in NAMES:
            for joint, value in zip(joints, values, strict=True):
                if isinstance(value, (int, float)):
                    yield f"{joint}/{FIELDS.get(name, name)}", float(value)


def _leaves(fields: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, float]]:
    """(path/field, number)"""
    for name, value in fields.items():
        at = f"{path}{name}"
        if isinstance(value, (bool, int, float)):
            yield at, float(value)
        elif _is_list(value):
            for k, item in enumerate(list(value)[:MOST_ELEMENTS]):
                if isinstance(item, (bool, int, float)):
                    yield f"{at}[{k}]", float(item)
                elif depth < DEPTH:
                    yield from _leaves(_fields(item), f"{at}[{k}]/", depth + 1)
        elif depth < DEPTH:
            yield from _leaves(_fields(value), f"{at}/", depth + 1)


def _is_list(value: Any) -> bool:
    """Repeated fields of Protobuf are of a type of their own."""
    return isinstance(value, (list, tuple, np.ndarray)) or type(value).__name__.startswith("Repeated")


def _fields(message: Any) -> Mapping[str, Any]:
    """Of a message of any of the decoders; empty for what is none."""
    if isinstance(message, Mapping):
        return message
    if hasattr(message, "DESCRIPTOR"):
        return {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}
    slots = getattr(type(message), "__slots__", ()) or getattr(message, "__dict__", ())
    return {name.lstrip("_"): getattr(message, name) for name in slots if not callable(getattr(message, name))}


def _seconds(stamp: Mapping[str, Any]) -> float:
    parts = ("sec", "secs", "seconds"), ("nanosec", "nsec", "nsecs", "nanos")
    whole, fraction = (next((float(stamp[name]) for name in names if name in stamp), 0.0) for names in parts)
    return whole + 1e-9 * fraction
