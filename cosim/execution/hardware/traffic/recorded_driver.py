"""A driver whose calls are recorded, with what they return, and its connection, whose use is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cosim.core.driver_contract import BusItem, Connection, HardwareDriver
from cosim.core.errors import CosimError, RunError
from cosim.core.types import COMMAND, JointCommand, JointState
from cosim.execution.hardware.traffic.traffic_log import DriverTraffic, Fields, Passing

NOTHING = Fields()


MEASURED = ("position", "velocity", "effort", "temperature")


def failure(error: BaseException) -> Fields:
    """The class and the text of an error, without its place, which belongs to the connection or the rig."""
    what = error.what if isinstance(error, CosimError) else str(error)
    return Fields(f"{type(error).__name__}: {what}")


class RecordedConnection:
    """Another connection, to which everything is passed on; satisfies `cosim.core.driver_contract.Connection`.

    An entry is made after a use of the connection, so its time is that at which a driver had sent or received.
    """

    def __init__(self, link: Connection, traffic: DriverTraffic) -> None:
        self._link, self._traffic = link, traffic
        traffic.now, traffic.connected = link.now, True
        self.now = traffic.read_clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    def open(self) -> None:
        self._link.open()
        self._traffic.add(Passing.CONNECTED, NOTHING)

    def reopen(self) -> bool:
        done = self._link.reopen()
        self._traffic.add(Passing.RECONNECTED, Fields(whole=(int(done),)))
        return done

    def send(self, item: BusItem, deadline_ns: int) -> None:
        try:
            self._link.send(item, deadline_ns)
        except RunError as error:
            self._traffic.add(Passing.SEND_FAILED, failure(error))
            raise
        self._traffic.add(Passing.SENT, item)

    def receive(self, deadline_ns: int) -> BusItem | None:
        try:
            item = self._link.receive(deadline_ns)
        except RunError as error:
            self._traffic.add(Passing.RECEIVE_FAILED, failure(error))
            raise
        if item is None:
            self._traffic.add(Passing.EMPTY, NOTHING)
        else:
            self._traffic.add(Passing.RECEIVED, item)
        return item


def fields_of_state(state: JointState) -> Fields:
    """Whole numbers: the time of the measurement, then the fault codes; numbers: what is MEASURED."""
    numbers = np.concatenate([getattr(state, name) for name in MEASURED])
    return Fields("", (int(state.t_ns), *state.fault.tolist()), numbers.tobytes())


def fields_of_command(command: JointCommand, deadline_ns: int) -> Fields:
    """Whole numbers: the deadline, and the end of the validity; numbers: what is in COMMAND."""
    numbers = np.concatenate([getattr(command, name) for name in COMMAND])
    return Fields("", (int(deadline_ns), int(command.valid_until_ns)), numbers.tobytes())


class RecordedDriver:
    """Another driver, to which everything is passed on; satisfies `cosim.core.driver_contract.HardwareDriver`.

    States are numbered in the order of their first use, because a driver keeps what it has not measured yet.
    """

    def __init__(self, driver: HardwareDriver, traffic: DriverTraffic) -> None:
        self._driver, self._add = driver, traffic.add
        self._states: list[JointState] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def open(self) -> None:
        self._add(Passing.OPEN, NOTHING)
        with self._ending():
            self._driver.open()

    def enable(self, mode: str) -> None:
        self._add(Passing.ENABLE, Fields(mode))
        with self._ending():
            self._driver.enable(mode)

    def clear(self) -> None:
        self._add(Passing.CLEAR, NOTHING)
        with self._ending():
            self._driver.clear()

    def read(self, out: JointState, deadline_ns: int) -> None:
        self._add(Passing.READ, Fields("", (int(deadline_ns), self._number_of(out))))
        try:
            self._driver.read(out, deadline_ns)
        except BaseException as error:
            self._add(Passing.RAISED, failure(error))
            raise
        self._add(Passing.RETURNED, fields_of_state(out))

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        self._add(Passing.WRITE, fields_of_command(cmd, deadline_ns))
        with self._ending():
            self._driver.write(cmd, deadline_ns)

    def stop(self) -> None:
        self._add(Passing.STOP, NOTHING)
        with self._ending():
            self._driver.stop()

    def close(self) -> None:
        self._add(Passing.CLOSE, NOTHING)
        with self._ending():
            self._driver.close()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Add the end of a call without a result."""
        try:
            yield
        except BaseException as error:
            self._add(Passing.RAISED, failure(error))
            raise
        self._add(Passing.RETURNED, NOTHING)

    def _number_of(self, state: JointState) -> int:
        for number, known in enumerate(self._states):
            if known is state:
                return number
        self._states.append(state)
        return len(self._states) - 1
