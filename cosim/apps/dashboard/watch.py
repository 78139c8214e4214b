"""The stream of a run as the source of a page that watches it: its messages as news."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.apps.dashboard.source import About, JointAbout, News, PageEvent, ParameterAbout, Status, Value
from cosim.core.access.binding import check_address
from cosim.core.access.curve import is_local
from cosim.core.errors import InputError
from cosim.core.trust.plain_data import WrongShape
from cosim.execution.timing.privileges import allowed_cpus, move_process_off
from cosim.output.stream.messages import signals_of

if TYPE_CHECKING:
    from cosim.output.stream.reading import PublishedSchema

MOST_MESSAGES = 2_000  # per poll
GONE_TIMEOUT = 5.0  # s without a message, the schema included, after which a run is gone
NOTHING = News(np.empty(0), np.empty((0, 0)))


def about_of(schema: PublishedSchema) -> About:
    joints = {
        name: JointAbout(
            joint["unit"] or "",
            *(_number(joint[key]) for key in ("lower", "upper", "velocity", "effort")),
            real=joint["real"],
        )
        for name, joint in schema["joints"].items()
    }
    parameters = {
        name: ParameterAbout(
            item["unit"], item["min"], item["max"], value_of(item["value"]), tuple(item.get("joints", ()))
        )
        for name, item in schema["parameters"].items()
    }
    return About(
        schema["rig"],
        schema["signals"],
        joints,
        parameters,
        schema["step"],
        schema["path"],
        schema["drawing"],
        tuple(schema["moves"]),
        {name: _number(load) for name, load in schema["bus_loads"].items()},
    )


class StreamReader:
    """Collects the messages of a stream; it knows neither socket nor clock."""

    def __init__(self, signals: Sequence[str]) -> None:
        self._signals = tuple(signals)
        self.state, self.missed, self.lost = "", 0, 0
        self._number, self._t = -1, -math.inf
        self._rows: list[tuple[float, list[float]]] = []
        self._events: list[PageEvent] = []
        self._restarted = False

    def add(self, message: Mapping[str, Any]) -> None:
        """An event or a sample. Raises WrongShape for a signal that is no number."""
        if "event" in message:
            self._events.append(PageEvent(message["t"], message["event"], message["level"]))
        else:
            self._add_sample(message)

    def _add_sample(self, sample: Mapping[str, Any]) -> None:
        number, t = sample["n"], sample["t"]
        if t < self._t:
            self.restart()
        if self._number >= 0:
            self.lost += max(0, number - self._number - 1)
        self._number, self._t, self.missed = number, t, sample["missed"]
        values = dict(signals_of(sample))
        self._rows.append((t, [values.get(name, math.nan) for name in self._signals]))

    def restart(self) -> None:
        """What comes next is of another run."""
        self._rows.clear()
        self._events.clear()
        self._restarted, self.missed, self.lost, self._number, self._t = True, 0, 0, -1, -math.inf

    def take(self) -> News:
        """What was added since the last call."""
        rows, events, restarted = self._rows, self._events, self._restarted
        self._rows, self._events, self._restarted = [], [], False
        values = np.array([row for _, row in rows], dtype=float).reshape(len(rows), len(self._signals))
        return News(np.array([t for t, _ in rows]), values, tuple(events), restarted)


def _number(value: float | None) -> float:
    """JSON has null for what is not finite."""
    return math.nan if value is None else value


def value_of(value: float | list[float | None] | None) -> Value:
    return [_number(item) for item in value] if isinstance(value, list) else _number(value)


class Watch:
    """A subscriber; ZeroMQ connects again by itself when a run publishes at the address once more."""

    def __init__(self, address: str, clock: Callable[[], float] = time.monotonic, key: str | None = None) -> None:
        """key: file of the public key of an encrypted stream. Raises InputError for what is no address or no key."""
        import zmq

        check_address(address)
        self.address, self._clock = address, clock
        self.about: About | None = None
        self.control: str | None = None  # address of the control socket, as the stream states it
        self._pid, self._cpus = 0, allowed_cpus()
        self._reader = StreamReader(())
        self._state, self._heard, self._sampled = "", clock(), clock()
        self._socket = zmq.Context.instance().socket(zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, MOST_MESSAGES)
        self._socket.subscribe(b"")
        try:
            if key is not None:
                from cosim.core.access.curve import secure_client

                secure_client(self._socket, key)
            self._socket.connect(address)
        except zmq.ZMQError as cause:
            self._socket.close()
            what = f"no address of a stream ({zmq.strerror(cause.errno or 0)}); give one such as tcp://127.0.0.1:9872"
            raise InputError(what, address) from cause
        except InputError:
            self._socket.close()
            raise

    @property
    def status(self) -> Status:
        silence = self._clock() - self._heard
        if self.about is None:
            return Status("connecting", reason=f"nothing is published at {self.address}" if silence > 1.0 else "")
        if silence > GONE_TIMEOUT and self._state != "ended":
            return Status("gone", silence, reason=f"nothing came for {silence:.0f} s")
        # no sample is expected in a pause
        age = silence if self._state == "paused" else self._clock() - self._sampled
        return Status(self._state, age, self._reader.missed, self._reader.lost)

    def poll(self) -> News:
        """Raises InputError for a message that no run publishes."""
        from zmq import NOBLOCK, Again

        for _ in range(MOST_MESSAGES):
            try:
                data = self._socket.recv(NOBLOCK)
            except Again:
                break
            self._heard = self._clock()
            self._take(data)
        return NOTHING if self.about is None else self._reader.take()

    def _take(self, data: bytes) -> None:
        from cosim.output.stream.reading import no_telemetry, read_message, read_schema

        message = read_message(data, self.address)
        if "schema" in message:
            self._learn(read_schema(message["schema"], self.address))
        elif self.about is not None:
            self._sampled = self._heard
            try:
                self._reader.add(message)
            except WrongShape as wrong:
                raise no_telemetry(wrong, self.address) from None

    def _learn(self, schema: PublishedSchema) -> None:
        """The first schema of a run gives the signals; later ones the state."""
        self._state, self.control = schema["state"], schema["control"]
        if self.about is not None and schema["pid"] == self._pid:
            return
        if is_local(self.address):
            move_process_off(schema["cpu"], self._cpus)
        self._pid, about = schema["pid"], about_of(schema)
        if self.about is None or not self.about.same_signals(about):
            self.about, self._reader = about, StreamReader(list(about.units))
        self._sampled = self._heard
        self._reader.restart()

    def close(self) -> None:
        self._socket.close()
