"""A driver whose calls are recorded, with what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosim.hardware.traffic.recorded_connection import failure
from cosim.hardware.traffic.traffic_log import DriverTraffic, Fields, Passing
from cosim.types import COMMAND, HardwareDriver, JointCommand, JointState

MEASURED = ("position", "velocity", "effort", "temperature")


def fields_of_state(state: JointState) -> Fields:
    """Whole numbers: the time of the measurement, then the fault codes; numbers: what is MEASURED."""
    numbers = np.concatenate([getattr(state, name) for name in MEASURED])
    return Fields("", (int(state.t_ns), *state.fault.tolist()), numbers.tobytes())


def fields_of_command(command: JointCommand, deadline_ns: int) -> Fields:
    """Whole numbers: the deadline, and the end of the validity; numbers: what is in COMMAND."""
    numbers = np.concatenate([getattr(command, name) for name in COMMAND])
    return Fields("", (int(deadline_ns), int(command.valid_until_ns)), numbers.tobytes())


def nothing() -> Fields:
    return Fields()


class RecordedDriver:
    """Another driver, to which everything is passed on; satisfies `cosim.types.HardwareDriver`.

    States are numbered in the order of their first use, because a driver keeps what it has not measured yet.
    """

    def __init__(self, driver: HardwareDriver, traffic: DriverTraffic) -> None:
        self._driver, self._traffic = driver, traffic
        self._states: list[JointState] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def open(self) -> None:
        self._call(Passing.OPEN, Fields(), self._driver.open)

    def enable(self, mode: str) -> None:
        self._call(Passing.ENABLE, Fields(mode), lambda: self._driver.enable(mode))

    def clear(self) -> None:
        self._call(Passing.CLEAR, Fields(), self._driver.clear)

    def read(self, out: JointState, deadline_ns: int) -> None:
        given = Fields("", (int(deadline_ns), self._number_of(out)))
        self._call(Passing.READ, given, lambda: self._driver.read(out, deadline_ns), lambda: fields_of_state(out))

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        given = fields_of_command(cmd, deadline_ns)
        self._call(Passing.WRITE, given, lambda: self._driver.write(cmd, deadline_ns))

    def stop(self) -> None:
        self._call(Passing.STOP, Fields(), self._driver.stop)

    def close(self) -> None:
        self._call(Passing.CLOSE, Fields(), self._driver.close)

    def _call(
        self, what: Passing, given: Fields, call: Callable[[], object], result: Callable[[], Fields] = nothing
    ) -> None:
        self._traffic.add(what, given)
        try:
            call()
        except BaseException as error:
            self._traffic.add(Passing.RAISED, failure(error))
            raise
        self._traffic.add(Passing.RETURNED, result())

    def _number_of(self, state: JointState) -> int:
        for number, known in enumerate(self._states):
            if known is state:
                return number
        self._states.append(state)
        return len(self._states) - 1
