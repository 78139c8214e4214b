"""A process that records or publishes for a real-time run: `python -m cosim.output.sink_process`.

It reads frames (`cosim.output.frame_protocol`) from its standard input and replies on its standard output. It ends on
request, or when its input ends because the process of the run died: then it finishes the recording with all it has.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import groupby

from cosim.core.errors import CosimError, InputError, RunError, describe_exception
from cosim.output.frame_protocol import (
    FrameDecoder,
    FrameKind,
    decode_fields,
    decode_ticks,
    decode_values,
    encode_fields,
    encode_frame,
)
from cosim.output.sinks import RecordingSink, open_sinks
from cosim.output.stream.stream_sink import SCHEMA_PERIOD, StreamSink
from cosim.simulation.tick.tick_block import joined

NICENESS = 10
READ_BYTES = 1 << 16  # small: a pipe is locked while it is read, and the run would have to wait
READS = 4  # at a time, of what waits: the frames of ticks among it are evaluated together, which is many times faster
SINK_METHODS = {FrameKind.EVENT: "event", FrameKind.FAULT: "fault", FrameKind.CHANGE: "change"}
RECORDING_METHODS = {FrameKind.TRAFFIC: "traffic"}
STREAM_METHODS = {FrameKind.MISSED: "missed", FrameKind.SCHEMA: "describe"}
RUN_DIED = "the process of the run ended before the run did"

Reply = Callable[[FrameKind, bytes], None]


def serve(source: int, destination: int, ready: Callable[[], object] = lambda: None) -> None:
    """Process the frames of the file descriptor `source`, reply on `destination`; never raises. ready: called when the
    sinks are open."""

    def reply(kind: FrameKind, body: bytes = b"") -> None:
        with suppress(BrokenPipeError):  # the run has ended
            os.write(destination, encode_frame(kind, body))

    try:
        with ExitStack() as stack:
            _process_frames(source, stack, reply, ready)
        reply(FrameKind.DONE)
    except Exception as error:
        reply(FrameKind.FAILED, encode_fields(_error_fields(error)))


def _read_frames(source: int, idle: Callable[[], object]) -> Iterator[tuple[FrameKind, list[bytes]]]:
    """(kind, bodies) of the frames in order; several bodies only of ticks that follow one another. idle: called when
    nothing came for SCHEMA_PERIOD."""
    decoder, data = FrameDecoder(), b"start"
    while data:
        while not select.select([source], [], [], SCHEMA_PERIOD)[0]:
            idle()
        frames, reads = list[tuple[FrameKind, bytes]](), 0
        while data and reads < READS and (not reads or select.select([source], [], [], 0.0)[0]):
            data = os.read(source, READ_BYTES)
            frames += decoder.feed(data)
            reads += 1
        for kind, group in groupby(frames, key=lambda frame: frame[0]):
            bodies = [body for _, body in group]
            yield from [(kind, bodies)] if kind is FrameKind.TICKS else [(kind, [body]) for body in bodies]


def _process_frames(source: int, stack: ExitStack, reply: Reply, ready: Callable[[], object]) -> None:
    streams: list[StreamSink] = []
    frames = _read_frames(source, lambda: [stream.idle() for stream in streams])
    start = next(frames, None)
    if start is None:
        return
    config, evaluate = pickle.loads(start[1][0])  # the run is trusted: it started this process
    sinks = open_sinks(stack, config)
    streams += [sink for sink in sinks if isinstance(sink, StreamSink)]
    recordings = [sink for sink in sinks if isinstance(sink, RecordingSink)]
    if evaluate is not None:
        evaluate.prepare()
    ready()
    reply(FrameKind.READY, encode_fields([stream.endpoint for stream in streams]))
    last_ns = 0
    for kind, bodies in frames:
        body = bodies[0]
        if kind is FrameKind.END:
            return
        if kind is FrameKind.VALUES:
            t_ns, values = decode_values(body, len(config.channels))
            last_ns = int(t_ns[-1]) if len(t_ns) else last_ns
            for sink in sinks:
                sink(t_ns, values)
        elif kind is FrameKind.TICKS:
            assert evaluate is not None
            for block in joined([decode_ticks(body) for body in bodies]):
                last_ns = int(block.numbers[-1]) * evaluate.step_ns if len(block.numbers) else last_ns
                evaluate(block, sinks)
        elif kind in STREAM_METHODS:
            for stream in streams:
                getattr(stream, STREAM_METHODS[kind])(decode_fields(body))
        elif kind in RECORDING_METHODS:
            for recording in recordings:
                getattr(recording, RECORDING_METHODS[kind])(*decode_fields(body))
        else:
            fields = decode_fields(body)
            last_ns = fields[0]
            for sink in sinks:
                getattr(sink, SINK_METHODS[kind])(*fields)
    for sink in sinks:
        sink.fault(last_ns, RUN_DIED)


def _error_fields(error: Exception) -> tuple[int, str, str | None]:
    """(exit code, what, place) of the error that the run raises."""
    if not isinstance(error, CosimError):
        return RunError.exit_code, f"the output failed: {describe_exception(error)}", None
    kind = InputError if isinstance(error, InputError) else RunError
    return kind.exit_code, error.what, str(error.place) if error.place else None


def _detach_from_run() -> None:
    """Ignore signals that end the run, and run without real-time priority."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    with suppress(AttributeError, OSError):  # the thread that started this process may have a real-time priority
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def main() -> None:
    _detach_from_run()
    destination = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not get between the replies
    # at normal priority until the sinks are open: the run waits for that, on a busy machine for long
    serve(0, destination, lambda: os.nice(NICENESS))


if __name__ == "__main__":
    main()
