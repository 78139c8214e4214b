"""The stream of a rig: which signals it publishes, the schema that describes the rig to a subscriber, and a recorded
run as a stream, with its timing."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.errors import InputError, SourceLocation
from cosim.output.stream.messages import SAMPLE_FIELDS
from cosim.output.stream.stream_sink import StreamConfig, StreamSink
from cosim.rig.rig_parameter import RigParameter
from cosim.rig.run.run import Run
from cosim.rig.run.run_metadata import RunMetadata
from cosim.rig.run.signal_patterns import matching_columns
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.wired_rig import WiredRig

if TYPE_CHECKING:
    from cosim.output.stream.reading import JointFields, Schema

VERSION = 1  # of the schema

REPLAY_PERIOD = 0.02  # s, between looks at the clock
REPLAY_RATE = 50.0  # Hz, of the samples


def streamed_columns(spec: RigSpec, names: Sequence[str]) -> tuple[int, ...]:
    """The columns of the signals that are published, of these. Raises InputErrors for `telemetry.signals` that do not
    exist, InputError for signals that a sample has no room for."""
    columns = matching_columns(
        spec.telemetry.signals, names, lambda number: spec.source.place(("telemetry", "signals", number))
    )
    check_names([names[k] for k in columns], spec.source.place(("telemetry", "publish")))
    return columns


def check_names(names: Sequence[str], place: SourceLocation | str | None) -> None:
    """Raises InputError at the place for signals that a sample has no room for."""
    for group in (name.partition("/")[0] for name in names):
        if group in SAMPLE_FIELDS:
            what = f"'{group}' is a field of every sample and cannot be the name of a joint too"
            raise InputError(f"{what}; rename the joint", place)


def stream_config_of(rig: WiredRig, metadata: RunMetadata, start_ns: int, schema: Schema) -> StreamConfig:
    """The stream of a run. The spec of the rig has `telemetry.publish`."""
    telemetry, schedule, signals = rig.run_spec.telemetry, rig.run_spec.schedule, tuple(metadata.units.items())
    columns = rig.cached.get("streamed", lambda: streamed_columns(rig.spec, tuple(metadata.units)))
    assert telemetry.publish is not None
    return StreamConfig(
        endpoint=telemetry.publish,
        signals=tuple(signals[k] for k in columns),
        columns=columns,
        step_ns=metadata.step_ns,
        start_ns=start_ns,
        realtime=schedule.pacing is not None,
        schema=schema,
        rate=telemetry.rate,
        decimation=telemetry.decimation,
        format=telemetry.format,
        key=telemetry.key,
    )


def schema_of(rig: WiredRig, metadata: RunMetadata, state: str = "running", control: str | None = None) -> Schema:
    """The schema now. state: of the session; control: endpoint of its control socket."""
    from cosim.rig.parameter_table import table_of

    rate, pacing = rig.run_spec.telemetry.rate, rig.run_spec.schedule.pacing
    schema = schema_of_metadata(metadata, rate, pacing is not None, table_of(rig).live, state, control)
    schema["cpu"] = None if pacing is None else pacing.cpu
    if rig.hardware:
        from cosim.rig.moving_motors import what_moves

        schema["moves"], schema["bus_loads"] = list(what_moves(rig)), dict(rig.bus_loads)
    return schema


def schema_of_metadata(
    metadata: RunMetadata,
    rate: float,
    realtime: bool,
    parameters: Mapping[str, RigParameter],
    state: str = "running",
    control: str | None = None,
) -> Schema:
    """rate [Hz]: of the samples; parameters: those that clients can set, by name."""
    return {
        "version": VERSION,
        "rig": metadata.name,
        "path": os.path.abspath(metadata.path),
        "pid": os.getpid(),
        "cpu": None,
        "state": state,
        "realtime": realtime,
        "rate": rate,
        "step": metadata.step_ns / 1e9,
        "control": control,
        "joints": {name: _joint(metadata, name) for name in metadata.roles},
        "parameters": {name: one.record(metadata.parameters[name]) for name, one in parameters.items()},
        "drawing": metadata.drawing,
        "moves": [],
        "bus_loads": {},
    }


def _joint(metadata: RunMetadata, name: str) -> JointFields:
    limits = metadata.limits.get(name, {})
    return {
        "unit": metadata.units.get(f"{name}/position"),
        "lower": limits.get("lower"),
        "upper": limits.get("upper"),
        "velocity": limits.get("velocity"),
        "effort": limits.get("effort"),
        "real": metadata.roles[name] == "real",
    }


def republish(
    run: Run,
    endpoint: str,
    speed: float = 1.0,
    ready: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Publish all samples and events of a run from its first tick to its last, as it would be published live.

    speed: of the replay, relative to the run; ready: called with the endpoint before the first sample; clock [s] and
    sleep: of the machine. The timestamps of samples advance with the time of the run.
    Raises InputError for a run without ticks, an invalid speed, and an endpoint that cannot be bound.
    """
    if not len(run.t):
        raise InputError("the run has no tick; there is nothing to publish", run.rig.name)
    if not 0.0 < speed < float("inf"):
        raise InputError(f"{speed:g} is no speed; give one above 0, such as 1 or 0.25", "--speed")
    signals = tuple(run.units.items())
    check_names(run.signals, "replay")
    schema = schema_of_metadata(run.rig, rate=REPLAY_RATE, realtime=True, parameters={})
    first = float(run.t[0])
    start_ns = time.time_ns() - round(first * 1e9)
    columns, step_ns = tuple(range(len(signals))), run.rig.step_ns
    config = StreamConfig(
        endpoint, signals, columns, step_ns, start_ns, realtime=False, schema=schema, rate=REPLAY_RATE
    )
    events = sorted(run.events, key=lambda event: event.t)
    with ExitStack() as stack:
        sink = StreamSink(stack, config)
        ready(sink.endpoint)
        begun, done = clock(), 0
        while done < len(run.t):
            now = first + speed * (clock() - begun)
            due = bisect_right(run.t, now)
            t = np.asarray(run.t[done:due])
            sink(np.rint(t * 1e9).astype(np.int64), np.asarray(run.values[done:due]))
            while events and (events[0].t <= now or due == len(run.t)):
                event = events.pop(0)
                sink.event(round(event.t * 1e9), event.name, event.level)
            done = due
            sleep(REPLAY_PERIOD)
        if run.fault:
            sink.fault(round(float(run.t[-1]) * 1e9), run.fault)
        sink.describe({**schema, "state": "ended"})
