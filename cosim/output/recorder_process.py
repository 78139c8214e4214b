"""The process beside a run on time that records and publishes: `python -m cosim.output.recorder_process`.

It reads frames (`cosim.output.frame_protocol`) from its standard input and answers on its standard output. It ends on
request, or when its input ends because the process of the run died: then it finishes the recording with all it has.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

from cosim.errors import CosimError, InputError, RunError, describe_exception
from cosim.output.frame_protocol import (
    FrameDecoder,
    FrameKind,
    decode_batch,
    decode_fields,
    encode_fields,
    encode_frame,
)
from cosim.output.sinks import SinkConfig, open_sinks

NICENESS = 10
READ_BYTES = 1 << 16  # few: a pipe is locked while it is read from, and the run would have to wait
SAID = {FrameKind.EVENT: "event", FrameKind.FAULT: "fault"}
RUN_DIED = "the program of the run ended before it could end the run"

Reply = Callable[[FrameKind, bytes], None]


def serve(source: int, answers: int) -> None:
    """Follow the frames that come from the file descriptor `source`; answer on `answers`, never raise."""

    def tell(kind: FrameKind, body: bytes = b"") -> None:
        with suppress(BrokenPipeError):  # nobody is left to hear it
            os.write(answers, encode_frame(kind, body))

    try:
        with ExitStack() as stack:
            _process_frames(_read_frames(source), stack, tell)
        tell(FrameKind.DONE)
    except Exception as error:
        tell(FrameKind.FAILED, encode_fields(_error_fields(error)))


def _read_frames(source: int) -> Iterator[tuple[FrameKind, bytes]]:
    frames = FrameDecoder()
    while data := os.read(source, READ_BYTES):
        yield from frames.feed(data)


def _process_frames(frames: Iterator[tuple[FrameKind, bytes]], stack: ExitStack, tell: Reply) -> None:
    start = next(frames, None)
    if start is None:
        return
    output = SinkConfig(**decode_fields(start[1]))
    sinks = open_sinks(stack, output)
    tell(FrameKind.READY, b"")
    latest = 0
    for kind, body in frames:
        if kind is FrameKind.END:
            return
        if kind is FrameKind.BATCH:
            t_ns, values = decode_batch(body, len(output.channels))
            latest = int(t_ns[-1]) if len(t_ns) else latest
            for sink in sinks:
                sink(t_ns, values)
        else:
            words = decode_fields(body)
            latest = words[0]
            for sink in sinks:
                getattr(sink, SAID[kind])(*words)
    for sink in sinks:
        sink.fault(latest, RUN_DIED)


def _error_fields(error: Exception) -> tuple[int, str, str | None]:
    """Exit code, what and where, as the run raises it again."""
    if not isinstance(error, CosimError):
        return RunError.exit_code, f"recording failed: {describe_exception(error)}", None
    kind = InputError if isinstance(error, InputError) else RunError
    return kind.exit_code, error.what, str(error.place) if error.place else None


def _detach_from_run() -> None:
    """Leave the processor to the run, and the end to it, too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    with suppress(AttributeError, OSError):  # the run's thread may have had a real-time priority already
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(NICENESS)


def main() -> None:
    _detach_from_run()
    answers = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    serve(0, answers)


if __name__ == "__main__":
    main()
