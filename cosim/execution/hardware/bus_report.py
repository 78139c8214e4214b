"""What a run states of the connection of a driver."""

from __future__ import annotations

from typing import TypedDict

from cosim.core.driver_contract import FeedforwardReport


class BusReport(TypedDict):
    """Traffic of the connection of a driver in a run; loads are fractions of the bit rate."""

    driver: str
    connection: str
    bus_load: float
    bus_load_estimated: float
    sent: int
    received: int
    errors: int
    unsent: int  # commands that expired before they could be sent
    feedforward: list[FeedforwardReport]  # of each joint
