"""A connection whose use by a driver is recorded."""

from __future__ import annotations

from typing import Any

from cosim.core.driver_contract import BusItem, Connection
from cosim.core.errors import CosimError, RunError
from cosim.execution.hardware.traffic.traffic_log import DriverTraffic, Fields, Passing

NOTHING = Fields()


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
