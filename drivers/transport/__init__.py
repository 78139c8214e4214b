"""Connections to drives: CAN buses and serial ports, the host's and the device's end of each, and their bus load."""

from __future__ import annotations

from typing import overload

from cosim.core.driver_contract import Connection
from cosim.plugins.drivers.transport.bus_load import Traffic, estimate, seconds
from cosim.plugins.drivers.transport.can import CanBus
from cosim.plugins.drivers.transport.connection import (
    BaseConnection,
    CanFrame,
    ConnectionLost,
    Locate,
    TrafficMeter,
    now,
)
from cosim.plugins.drivers.transport.connection_params import CanParams, SerialParams, UartParams
from cosim.plugins.drivers.transport.pty import Pty
from cosim.plugins.drivers.transport.serial import SerialPort
from cosim.plugins.drivers.transport.slcan import SlcanAdapter

__all__ = [
    "BaseConnection",
    "CanBus",
    "CanFrame",
    "CanParams",
    "Connection",
    "ConnectionLost",
    "Pty",
    "SerialParams",
    "SerialPort",
    "SlcanAdapter",
    "Traffic",
    "TrafficMeter",
    "UartParams",
    "device_link",
    "estimate",
    "host_link",
    "now",
    "seconds",
]


@overload
def host_link(params: CanParams, place: Locate) -> CanBus: ...
@overload
def host_link(params: SerialParams, place: Locate) -> SerialPort: ...
def host_link(params: CanParams | SerialParams, place: Locate) -> CanBus | SerialPort:
    """The program's end of a connection; place(*keys): the place of a key of its section."""
    return CanBus(params, place) if isinstance(params, CanParams) else SerialPort(params, place)


@overload
def device_link(params: CanParams, place: Locate) -> CanBus | SlcanAdapter: ...
@overload
def device_link(params: SerialParams, place: Locate) -> Pty: ...
def device_link(params: CanParams | SerialParams, place: Locate) -> CanBus | SlcanAdapter | Pty:
    """The device's end of the same connection: one more node on a CAN bus; for a serial port, and for a serial adapter
    (`slcan`), a pseudo terminal at its path."""
    if isinstance(params, SerialParams):
        return Pty(params, place)
    return SlcanAdapter(params, place) if params.interface == "slcan" else CanBus(params, place, "device")
