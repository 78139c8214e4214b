"""Live telemetry: samples of a running rig on a ZeroMQ PUB socket, for dashboards and other subscribers.

Messages have two parts, a topic and a msgpack map:
`<rig>/channels` {"names": [str, ...], "units": [str, ...]} and
`<rig>/sample` {"t_ns": int, "values": [float, ...]}, the values in the order of the names.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from cosim.errors import InputError

CHANNELS_INTERVAL = 50  # samples; a subscriber that joins late receives the names within this number
BIND_FIXES = {
    errno.EADDRINUSE: "stop the other program or give another port",
    errno.EACCES: "give a port above 1023 or a folder you may write to",
}
DEFAULT_BIND_FIX = "give an endpoint such as tcp://127.0.0.1:5556 or ipc:///tmp/rig"


class Publisher:
    """Publishes at most `rate_hz` samples per second of the run and never blocks the run.

    endpoint: any ZeroMQ endpoint to bind. It is taken literally: `tcp://127.0.0.1:5556` and `ipc://...`
    stay on this machine, while `tcp://*:5556` and `tcp://0.0.0.0:5556` let the whole network listen.
    The attribute `endpoint` is the bound one, with the port that `tcp://127.0.0.1:*` chose.
    channels: (signal, unit) of each column. rate_hz: above 0, in simulated time.

    A subscriber that is too slow misses samples. Raises InputError when the endpoint cannot be bound.
    """

    def __init__(self, endpoint: str, channels: Sequence[tuple[str, str]], rate_hz: float, rig_name: str) -> None:
        import zmq

        self._rig_name = rig_name
        self._channels = {"names": [name for name, _ in channels], "units": [unit for _, unit in channels]}
        self._period_ns = 1e9 / rate_hz
        self._last_interval = -1  # interval of the last sample
        self._sent = 0
        self._socket = zmq.Context.instance().socket(zmq.PUB)
        self._socket.setsockopt(zmq.SNDHWM, 1000)
        self._socket.setsockopt(zmq.LINGER, 0)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as cause:
            self._socket.close()
            fix = BIND_FIXES.get(cause.errno or 0, DEFAULT_BIND_FIX)
            reason = zmq.strerror(cause.errno or 0)
            raise InputError(f"cannot publish telemetry: {reason}; {fix}", endpoint) from cause
        self.endpoint: str = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def publish(self, t_ns: np.ndarray, rows: np.ndarray) -> None:
        """Send the samples that are due of t_ns (k,) integer ns, rows (k, len(channels)); never blocks."""
        intervals = (t_ns // self._period_ns).astype(np.int64)
        for i in first_of_each_interval(intervals, self._last_interval):
            if self._sent % CHANNELS_INTERVAL == 0:
                self._send("channels", self._channels)
            self._send("sample", {"t_ns": int(t_ns[i]), "values": rows[i].tolist()})
            self._sent += 1
        if len(intervals):
            self._last_interval = int(intervals[-1])

    def close(self) -> None:
        """Close the endpoint; messages that no subscriber has received are discarded. Idempotent."""
        self._socket.close()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, topic: str, body: Mapping[str, object]) -> None:
        import msgpack
        import zmq

        payload = msgpack.packb(body)
        with suppress(zmq.Again):
            self._socket.send_multipart([f"{self._rig_name}/{topic}".encode(), payload], zmq.NOBLOCK)


def first_of_each_interval(intervals: np.ndarray, previous: int) -> np.ndarray:
    """Indices where `intervals` (k,), the interval number of each sample, differs from the one before.

    previous: interval of the sample before the first. Intervals count from t = 0, so a late sample does not shift the
    samples after it.
    """
    return np.flatnonzero(np.diff(intervals, prepend=previous))
