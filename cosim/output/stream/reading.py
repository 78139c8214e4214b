"""The messages of a stream as a subscriber reads them, whoever published them: each field has its declared shape; and
what a run answers at its control socket, as the reference page has it."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar

from msgspec import Meta

from cosim.core.errors import InputError
from cosim.core.trust.plain_data import WrongShape, from_json, from_msgpack, of_shape
from cosim.core.types import Level

Number = float | None  # JSON has null for what is not finite
Time = Annotated[float, Meta(gt=-9.2e9, lt=9.2e9)]  # s, whose nanoseconds fit into 64 bits
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[float, Meta(gt=0.0, lt=1e300)]


class JointFields(TypedDict):
    """Bounds in SI; unit: of its position, None for a joint without one; real: moved by a motor."""

    unit: str | None
    lower: Number
    upper: Number
    velocity: Number
    effort: Number
    real: bool


ChangeKind = Literal["live", "per run", "fixed"]  # when a parameter may change; fixed: while the rig is loaded


Value = TypeVar("Value")


class ParameterFacts(TypedDict, Generic[Value]):
    """What every listing of parameters states of one. value: in SI, a list where there are several; about: its
    meaning."""

    value: Value
    unit: str
    min: Number
    max: Number
    about: NotRequired[str]


class ParameterRecord(ParameterFacts[Value]):
    """A parameter as clients of a run see it. joints: of its elements, in a list with one for each; units: of its
    elements, where they differ."""

    changes: NotRequired[ChangeKind]
    joints: NotRequired[list[str]]
    units: NotRequired[list[str]]


class Schema(TypedDict):
    """What a subscriber needs to know of a rig, in SI; what is not known is None. The sink adds `signals`, the samples'
    with their units. See the reference of the stream for each field."""

    version: int
    rig: str
    path: str
    pid: Count
    cpu: Count | None
    state: str
    realtime: bool
    rate: Positive
    step: Positive
    control: str | None
    joints: dict[str, JointFields]
    parameters: dict[str, ParameterRecord[Number | list[Number]]]  # those that clients can set
    drawing: str
    moves: list[str]
    bus_loads: dict[str, Number]


class PublishedSchema(Schema):
    """The schema as it is published; signals: name -> unit."""

    signals: dict[str, str]


class SchemaMessage(TypedDict):
    """The schema as text, see `read_schema`."""

    schema: str


class EventMessage(TypedDict):
    """An event of the run."""

    event: str
    timestamp: Time
    t: Time
    level: Level


class SampleMessage(TypedDict):
    """Beside its signals, which are nested."""

    timestamp: Time
    n: Count
    tick: Count
    t: Time
    missed: Count


def read_message(data: bytes, address: str) -> dict[str, Any]:
    """A message in either format: an event or a sample with all of its fields, or a schema as text.

    Raises InputError at the address for what no run publishes.
    """
    try:
        message = from_json(data) if data[:1] == b"{" else from_msgpack(data)
        kind = SchemaMessage if "schema" in message else EventMessage if "event" in message else SampleMessage
        of_shape(message, kind)
        return message
    except WrongShape as wrong:
        raise no_telemetry(wrong, address) from None


def read_schema(text: str, address: str) -> PublishedSchema:
    """Raises InputError at the address for what describes no run."""
    try:
        return from_json(text, PublishedSchema)
    except WrongShape as wrong:
        raise no_telemetry(wrong, address) from None


def no_telemetry(wrong: WrongShape, address: str) -> InputError:
    return InputError(f"what is published there is no telemetry of a run ({wrong}); check the address", address)


class Answer(TypedDict, total=False):
    """Which fields there are depends on the command and on whether it is granted."""

    id: int | str | None
    ok: bool
    error: str
    input: bool  # it is the request that is wrong, for any run of the rig
    tick: int
    timeout: float
    rig: str
    files: dict[str, str]
    values: dict[str, Number | list[Number]]
    parameters: dict[str, ParameterRecord[Any]]  # also text, and what is true or false
    motion: list[str]
    confirm_turns: list[str]
    state: str
    t: Number
    pid: int
    holder: str | None
