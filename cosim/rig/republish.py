"""A recorded run as a stream, with its timing."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from cosim.core.errors import InputError
from cosim.output.stream.stream_sink import StreamConfig, StreamSink
from cosim.rig.run.run import Run
from cosim.rig.run.stream import check_names, schema_of_metadata

PERIOD = 0.02  # s, between looks at the clock
RATE = 50.0  # Hz, of the samples


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
    schema = schema_of_metadata(run.rig, rate=RATE, realtime=True, parameters={})
    first = float(run.t[0])
    start_ns = time.time_ns() - round(first * 1e9)
    columns, step_ns = tuple(range(len(signals))), run.rig.step_ns
    config = StreamConfig(endpoint, signals, columns, step_ns, start_ns, realtime=False, schema=schema, rate=RATE)
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
            sleep(PERIOD)
        if run.fault:
            sink.fault(round(float(run.t[-1]) * 1e9), run.fault)
        sink.describe({**schema, "state": "ended"})
