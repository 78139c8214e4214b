"""What families of drives have in common beside the driver: the two ends of their connection, and checks when loaded.

A family's `Params` has a field `bus` (`CanParams`), a field `port` (`SerialParams`), or both, and one of them is given.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.plugins.drivers.transport import BaseConnection, CanParams, SerialParams, device_link, host_link


class BusOrPort(Protocol):
    """Params with both fields."""

    @property
    def bus(self) -> CanParams | None: ...

    @property
    def port(self) -> SerialParams | None: ...


class WithWatchdog(Protocol):
    @property
    def watchdog(self) -> float: ...


def check_one_connection(params: BusOrPort) -> None:
    """Raises ValueError unless one of both fields is given."""
    if (params.bus is None) == (params.port is None):
        raise ValueError("give either 'bus' or 'port'")


def connection_key(params: object) -> str:
    """`bus` or `port`, whichever is given."""
    return "port" if getattr(params, "bus", None) is None else "bus"


def connection_params(params: object) -> CanParams | SerialParams:
    """What is given under `connection_key`."""
    return getattr(params, connection_key(params))


def connection_name(params: object) -> str:
    """The name of the bus or serial link in messages."""
    return connection_params(params).name


def host(params: object, context: DriverContext) -> BaseConnection:
    """The program's end of the connection, not yet open."""
    if context.ends is not None:
        return context.ends[0]
    key = connection_key(params)
    return context.tapped(host_link(getattr(params, key), partial(context.place, key)))


def filtered_host(params: object, context: DriverContext, ids: set[int]) -> BaseConnection:
    """As `host`; on a CAN bus only frames with these identifiers are received."""
    link = host(params, context)
    if connection_key(params) == "bus" and (accept := getattr(link, "accept", None)) is not None:
        accept(ids)
    return link


def device(params: object, context: DriverContext) -> BaseConnection:
    """The drives' end of the connection, for an emulator, not yet open."""
    if context.ends is not None:
        return context.ends[1]
    key = connection_key(params)
    return device_link(getattr(params, key), partial(context.place, key))


def check_watchdog(params: WithWatchdog, context: DriverContext) -> None:
    """Raises InputError for a watchdog that would trip between two commands."""
    if params.watchdog <= context.period:
        what = f"must be longer than the period of {context.period:.6g} s, is {params.watchdog:.6g} s"
        raise InputError(what, context.place("watchdog"))
