"""Sinks of a run in a process of their own, `cosim.output.recorder_process`."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from cosim.errors import CosimError, RunError
from cosim.output.frame_protocol import ERROR_TYPES, FrameDecoder, FrameKind, decode_fields, encode_fields, encode_frame
from cosim.output.sinks import SinkConfig
from cosim.types import Level

TIMEOUT = 60.0  # s; how long the other process may take nothing, and say nothing, while it is waited for


PIPE_BYTES = 1 << 20  # the most that the system gives to everyone


MAX_WRITE_BYTES = 1 << 20  # bytes of the backlog that one call hands over at most, beside its own


class QueuedFrame(NamedTuple):
    """A frame on its way: its bytes, the ticks in it, and how many bytes each write has taken."""

    data: memoryview
    ticks: int
    taken: list[int]

    @property
    def left(self) -> int:
        return len(self.data) - sum(self.taken)


class RemoteSink:
    """The sinks of `output` in a process of their own; use it in a `with` statement, or call `close`.

    Start it before the thread gets a CPU or a priority of its own: the process would inherit the CPU. It returns when
    all is open; raises InputError when something cannot be opened, RunError when the process does not start.

    A call never waits: what the pipe does not take stays in a backlog, in memory, for the next call or for `close`.
    A recording that fails does not stop the run: `trouble` tells, and further calls do nothing until `close` raises.
    When this process dies, the other one finishes the file with everything that was handed over.
    """

    def __init__(self, output: SinkConfig) -> None:
        self._place = output.record or output.endpoint
        self._words = ("recorder", "recorded") if output.record is not None else ("publisher", "published")
        self._columns = len(output.channels)
        self._ticks = 0
        self._backlog: deque[QueuedFrame] = deque()
        self._heard: list[bytes] = []
        self._answers: dict[FrameKind, bytes] = {}
        self._error: CosimError | None = None
        self._closed = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cosim.output.recorder_process"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},  # the same modules
            process_group=0,  # Ctrl-C is for the run, which then tells its neighbour to end
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        try:
            for end in (self._in, self._out):
                os.set_blocking(end, False)
            _enlarge_pipe(self._in)
            self._send(FrameKind.START, encode_fields(asdict(output)))
            if not self._wait(FrameKind.READY):
                self._error = RunError(f"the {self._words[0]} did not start within {TIMEOUT:g} s", self._place)
            if self._error is not None:
                raise self._error
        except BaseException:
            self._closed = True
            self._end()
            raise

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        if values.shape != (len(t_ns), self._columns):
            raise ValueError(f"values are {values.shape}, not {(len(t_ns), self._columns)}")
        data = np.asarray(t_ns, np.int64).tobytes(), np.asarray(values, float).tobytes()
        self._ticks += len(t_ns)
        self._send(FrameKind.BATCH, *data, ticks=len(t_ns))

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        self._send(FrameKind.EVENT, encode_fields((int(t_ns), what, level)))

    def fault(self, t_ns: int, what: str) -> None:
        self._send(FrameKind.FAULT, encode_fields((int(t_ns), what)))

    @property
    def trouble(self) -> str:
        """Why nothing is taken any more, empty while all is well."""
        return str(self._error) if self._error is not None else ""

    @property
    def waiting(self) -> int:
        """Bytes that the other process has not been given yet."""
        return sum(piece.left for piece in self._backlog)

    def close(self) -> None:
        """Hand over all that waits and let the other process finish; idempotent.

        Raises RunError when something was not recorded, now or earlier in the run.
        """
        if self._closed:
            return
        try:
            self._send(FrameKind.END)
            self._closed = True
            if not self._wait(FrameKind.DONE):
                lost = sum(piece.ticks for piece in self._backlog)
                what = f"the {self._words[0]} took nothing for {TIMEOUT:g} s and was ended"
                missing = f"at least {lost:,} of {self._ticks:,} ticks are not {self._words[1]}"
                self._error = RunError(f"{what}; {missing}; use a faster disk and run again", self._place)
                self._process.kill()
        finally:
            self._closed = True
            self._end()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> RemoteSink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, kind: FrameKind, *parts: bytes, ticks: int = 0) -> None:
        if self._error is not None:
            return
        if self._closed:
            raise RunError(f"the {self._words[0]} has ended; nothing can be added", self._place)
        data = encode_frame(kind, *parts)
        self._backlog.append(QueuedFrame(memoryview(data), ticks, []))
        self._hand_over(MAX_WRITE_BYTES + len(data))
        self._listen()

    def _hand_over(self, most: int) -> None:
        """Write what the pipe takes of the backlog, `most` bytes at most."""
        # An interrupt may raise between any two steps of Python. So the call that writes also notes how much was
        # taken, and a piece leaves the backlog by what is noted: nothing is sent twice or left out.
        with suppress(BlockingIOError, BrokenPipeError):
            while self._backlog and most > 0:
                piece = self._backlog[0]
                if not piece.left:
                    self._backlog.popleft()
                    continue
                rest = piece.data[-piece.left :][:most]
                piece.taken.extend(map(os.write, (self._in,), (rest,)))
                most -= piece.taken[-1]

    def _listen(self, patience: float = 0.0) -> None:
        """Take in answers; when the other process has ended, say why, waiting up to `patience` [s] for its reason."""
        with suppress(BlockingIOError):
            self._heard.extend(map(os.read, (self._out,), (1 << 16,)))
            self._answers = dict(FrameDecoder().feed(b"".join(self._heard)))
        if FrameKind.FAILED in self._answers:
            code, what, place = decode_fields(self._answers[FrameKind.FAILED])
            self._error = ERROR_TYPES[code](what, place)
        elif self._ended and FrameKind.DONE not in self._answers:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(patience)
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                what = f"the {self._words[0]} ended on its own ({how}); the end of the run is not {self._words[1]}"
                self._error = RunError(f"{what}; run again", self._place)
        if self._error is not None:
            self._backlog.clear()

    @property
    def _ended(self) -> bool:
        """Nothing can come any more: the last read found the end."""
        return bool(self._heard) and not self._heard[-1]

    def _wait(self, answer: FrameKind) -> bool:
        """Go on until `answer` or an error comes; False when nothing has moved for PATIENCE."""
        while answer not in self._answers and self._error is None:
            poller = select.poll()
            poller.register(self._out, select.POLLIN)
            if self._backlog:
                poller.register(self._in, select.POLLOUT)
            if not poller.poll(TIMEOUT * 1e3):
                break
            self._hand_over(MAX_WRITE_BYTES)
            self._listen(TIMEOUT)
            if self._ended:
                break
        return answer in self._answers or self._error is not None

    def _end(self) -> None:
        """Close the pipes, which ends the other process, and see it off."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.close()
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            stdout.close()


def _enlarge_pipe(pipe: int) -> None:
    """A wider pipe, where the system has it to give."""
    import fcntl

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
