"""A recording or a stream of a run in a process of its own: `cosim.output.sink_process`."""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cosim.core.errors import CosimError, InputError, RunError
from cosim.core.types import Level
from cosim.execution.hardware.traffic.traffic_log import TrafficEntry
from cosim.output.evaluation import Evaluation
from cosim.output.frame_protocol import (
    ERROR_TYPES,
    FrameDecoder,
    FrameKind,
    decode_fields,
    encode_fields,
    encode_frame,
    encode_ticks,
)
from cosim.output.sinks import SinkConfig
from cosim.simulation.tick.tick_block import TickBlock

START_TIMEOUT = 60.0  # s without any progress of the process, while it starts
TIMEOUT = 10.0  # s likewise at the end of a recording: a slow disk makes progress, a process that hangs makes none
STREAM_TIMEOUT = 2.0  # s likewise at the end of a stream: nothing is lost with it
LOOK = 0.5  # s between looks at the progress; what one counts at most: the whole machine may have stalled
PIPE_BYTES = 1 << 20  # the largest pipe of an unprivileged process on Linux
MAX_WRITE_BYTES = 1 << 20  # of the backlog, per call, besides the frame of the call itself


class QueuedFrame(NamedTuple):
    """A frame that is being written: its bytes, the number of its ticks, the sizes of the writes so far."""

    kind: FrameKind
    data: memoryview
    ticks: int
    written: list[int]

    @property
    def remaining(self) -> int:
        return len(self.data) - sum(self.written)


class RemoteSink:
    """The sinks of `config` in a separate process; use it in a `with` statement, or call `close`.

    Start it before the thread binds itself to a CPU or takes a real-time priority: the process would inherit the CPU.
    The constructor returns when all sinks are open. It raises InputError when a sink cannot be opened, RunError when
    the process does not start.

    A call never blocks: bytes that the pipe does not accept stay in a backlog in memory until the next call or
    `close`. Of a recording all ticks are kept there; of a stream the newest ones, and `missed` counts the others.

    A process that fails does not stop the run: `failure` has the reason, and further calls do nothing; `close` of a
    recording raises it. When the process of the run dies, the process of a recording finishes the file with all it got.
    """

    def __init__(self, config: SinkConfig, evaluation: Evaluation | None = None, newest: int | None = None) -> None:
        """evaluation: computes the values of `ticks`, in the separate process; newest: how many ticks wait at most, for
        a stream."""
        self._newest = newest
        self._place = config.record or (config.stream.endpoint if config.stream else None)
        self._program, self._done = (
            ("recorder", "recorded") if config.record is not None else ("publisher", "published")
        )
        self._record = config.record
        self._columns = len(config.channels)
        self.missed = 0  # ticks that the process never gets
        self._ticks = 0
        self._backlog: deque[QueuedFrame] = deque()
        self._received: list[bytes] = []
        self._replies: dict[FrameKind, bytes] = {}
        self._error: CosimError | None = None
        self._ended = ""  # how the process ended before its work was done, and what that means
        self._closed = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cosim.output.sink_process"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},  # the same modules
            process_group=0,  # Ctrl-C reaches the run only, which then ends this process
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        try:
            for end in (self._in, self._out):
                os.set_blocking(end, False)
            _enlarge_pipe(self._in)
            self._send(FrameKind.START, pickle.dumps((config, evaluation)))
            if not self._wait(FrameKind.READY, START_TIMEOUT):
                self._error = RunError(f"the {self._program} did not start within {START_TIMEOUT:g} s", self._place)
            if self._error is not None:
                raise self._error
        except BaseException:
            self._closed = True
            self._end_process()
            raise

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        if values.shape != (len(t_ns), self._columns):
            raise ValueError(f"values are {values.shape}, not {(len(t_ns), self._columns)}")
        data = np.asarray(t_ns, np.int64).tobytes(), np.asarray(values, float).tobytes()
        self._ticks += len(t_ns)
        self._send(FrameKind.VALUES, *data, ticks=len(t_ns))

    def ticks(self, block: TickBlock) -> None:
        """Finished ticks instead of values: the separate process computes them, and the events."""
        self._ticks += len(block.numbers)
        self._send(FrameKind.TICKS, *encode_ticks(block), ticks=len(block.numbers))

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        self._send(FrameKind.EVENT, encode_fields((int(t_ns), what, level)))

    def fault(self, t_ns: int, what: str) -> None:
        self._send(FrameKind.FAULT, encode_fields((int(t_ns), what)))

    def change(self, t_ns: int, tick: int, name: str, value: Sequence[float]) -> None:
        self._send(FrameKind.CHANGE, encode_fields((int(t_ns), int(tick), name, list(value))))

    def traffic(self, zero_ns: int, entries: Sequence[TrafficEntry]) -> None:
        """Entries of the bus traffic, see `Recorder.traffic`."""
        self._send(FrameKind.TRAFFIC, encode_fields((zero_ns, entries)))

    def describe(self, schema: Mapping[str, Any]) -> None:
        """A new schema of the stream."""
        self._send(FrameKind.SCHEMA, encode_fields(schema))

    @property
    def endpoint(self) -> str:
        """Where the stream is published, with the port that was chosen."""
        return decode_fields(self._replies[FrameKind.READY])[0]

    @property
    def failure(self) -> str:
        """Why calls do nothing any more; empty while the process works."""
        return str(self._error) if self._error is not None else ""

    @property
    def backlog_bytes(self) -> int:
        """Bytes that are not written to the pipe yet."""
        return sum(queued.remaining for queued in self._backlog)

    def close(self) -> None:
        """Write the backlog and wait until the process has finished; idempotent.

        Raises RunError when something was not recorded, now or earlier in the run.
        """
        if self._closed:
            return
        try:
            self._send(FrameKind.END)
            self._closed = True
            if not self._wait(FrameKind.DONE, self._timeout):
                self._fail(f"made no progress for {self._timeout:g} s and was terminated")
                self._process.kill()
        finally:
            self._closed = True
            self._end_process()
        if self._ended and self._record is not None:
            self._error = RunError(f"{self._ended}: {self._missing(self._record)}; run again", self._place)
        if self._error is not None and self._newest is None:
            raise self._error

    def _fail(self, how: str) -> None:
        self._ended = f"the {self._program} {how}; the end of the run is not {self._done}"
        self._error = RunError(self._ended, self._place)

    def _missing(self, record: str) -> str:
        """How many ticks of the run its recording lacks: the file alone shows what the process has written."""
        from cosim.core.recordings.index import recordings_of
        from cosim.core.recordings.reader import RecordedSamples

        try:
            samples = RecordedSamples(recordings_of(record))
            if samples.count >= self._ticks:
                return f"all of its {self._ticks:,} ticks are, but events may be missing"
            end = f", the file ends at {samples.end}" if samples.count else ""
            return f"{self._ticks - samples.count:,} of its {self._ticks:,} ticks are missing{end}"
        except InputError as error:
            return f"how many of its {self._ticks:,} ticks are missing is unknown: {error.what}"

    def __enter__(self) -> RemoteSink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, kind: FrameKind, *parts: bytes, ticks: int = 0) -> None:
        if self._error is not None:
            return
        if self._closed:
            raise RunError(f"the {self._program} has ended; nothing can be added", self._place)
        data = encode_frame(kind, *parts)
        self._backlog.append(QueuedFrame(kind, memoryview(data), ticks, []))
        self._write(MAX_WRITE_BYTES + len(data))
        self._receive()
        if self._newest is not None:
            self._drop_oldest(self._newest)

    def _drop_oldest(self, newest: int) -> None:
        """Drop blocks from the backlog, the oldest first, until at most `newest` ticks wait or the last block alone."""
        excess = sum(queued.ticks for queued in self._backlog) - newest
        if excess <= 0:
            return
        last, kept, missed = self._backlog[-1], deque[QueuedFrame](), self.missed
        for queued in self._backlog:
            if excess > 0 and queued.ticks and not queued.written and queued is not last:
                excess, missed = excess - queued.ticks, missed + queued.ticks
            elif queued.kind is not FrameKind.MISSED or queued.written:
                kept.append(queued)
        if missed > self.missed:
            report = encode_frame(FrameKind.MISSED, encode_fields(missed))
            kept.insert(bool(kept[0].written), QueuedFrame(FrameKind.MISSED, memoryview(report), 0, []))
            self._backlog, self.missed = kept, missed

    def _write(self, limit: int) -> None:
        """Write as much of the backlog as the pipe accepts, at most `limit` bytes."""
        # An interrupt may raise between any two steps of Python. The call that writes therefore also records the number
        # of bytes, and a frame leaves the backlog according to these numbers: no byte is sent twice or lost.
        with suppress(BlockingIOError, BrokenPipeError):
            while self._backlog and limit > 0:
                queued = self._backlog[0]
                if not queued.remaining:
                    self._backlog.popleft()
                    continue
                rest = queued.data[-queued.remaining :][:limit]
                queued.written.extend(map(os.write, (self._in,), (rest,)))
                limit -= queued.written[-1]

    def _receive(self, timeout: float = 0.0) -> None:
        """Read replies. If the process has ended, set the error, waiting up to `timeout` [s] for its exit code."""
        with suppress(BlockingIOError):
            self._received.extend(map(os.read, (self._out,), (1 << 16,)))
            self._replies = dict(FrameDecoder().feed(b"".join(self._received)))
        if FrameKind.FAILED in self._replies:
            code, what, place = decode_fields(self._replies[FrameKind.FAILED])
            self._error = ERROR_TYPES[code](what, place)
        elif self._at_end and FrameKind.DONE not in self._replies:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(timeout)
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                self._fail(f"ended unexpectedly ({how})")
        if self._error is not None:
            self._backlog.clear()

    @property
    def _timeout(self) -> float:
        return TIMEOUT if self._newest is None else STREAM_TIMEOUT

    @property
    def _at_end(self) -> bool:
        """The last read found the end of the stream."""
        return bool(self._received) and not self._received[-1]

    def _wait(self, reply: FrameKind, timeout: float) -> bool:
        """Write and read until `reply` or an error arrives; False after `timeout` [s] without progress."""
        still, progress, looked = 0.0, self._progress(), time.monotonic()
        while reply not in self._replies and self._error is None and still < timeout:
            poller = select.poll()
            poller.register(self._out, select.POLLIN)
            if self._backlog:
                poller.register(self._in, select.POLLOUT)
            poller.poll(min(timeout, LOOK) * 1e3)
            self._write(MAX_WRITE_BYTES)
            self._receive(timeout)
            if self._at_end:
                break
            before, progress, since, looked = progress, self._progress(), looked, time.monotonic()
            still = 0.0 if progress != before else still + min(looked - since, LOOK)
        return reply in self._replies or self._error is not None

    def _progress(self) -> tuple[int, int, int]:
        """What changes while the process works: bytes that wait here, in its pipe, and in its files."""
        return self.backlog_bytes, _unread(self._in), 0 if self._record is None else _size(Path(self._record))

    def _end_process(self) -> None:
        """Close the pipes, which ends the process, and wait for it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.close()
        try:
            self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            stdout.close()


def _unread(pipe: int) -> int:
    """Bytes in a pipe."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def _size(recording: Path) -> int:
    """Bytes in the files of a recording; 0 where one was moved meanwhile."""
    with suppress(OSError):
        parts = recording.parent.glob(f"{escape(recording.stem)}*{recording.suffix}")
        return sum(part.stat().st_size for part in parts)
    return 0


def _enlarge_pipe(pipe: int) -> None:
    """Enlarge a pipe to PIPE_BYTES where the system supports it."""
    import fcntl

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
