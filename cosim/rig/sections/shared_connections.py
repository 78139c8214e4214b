"""Drivers of several families on one bus or serial port: a bus has one bit rate, a port has one driver."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from cosim.rig.reading.driver_family import DriverFamily
from cosim.rig.reading.plugins import Plugin
from cosim.rig.reading.schema import KeyPath, Reading

RATES = ("bitrate", "data_bitrate", "baudrate")


class ConnectedDriver(Protocol):
    """The part of a driver of the rig that is read here."""

    @property
    def name(self) -> str: ...

    @property
    def plugin(self) -> Plugin: ...

    @property
    def family(self) -> DriverFamily: ...

    def at(self, *keys: str | int) -> KeyPath: ...


class Ends(NamedTuple):
    """A driver and its connection. wire: the file of a serial port, also of an adapter for a bus, or the bus."""

    spec: ConnectedDriver
    key: str  # of its section
    wire: str
    rates: dict[str, float]


def check_shared_connections(drivers: Iterable[ConnectedDriver], reading: Reading) -> None:
    """Record connections that drivers of several families give with unlike bit rates, and serial ports that they share.
    A bit rate for data that one of them does not give is not compared."""
    seen: list[Ends] = []
    for ends in (each for spec in drivers for each in _ends(spec)):
        others = [other for other in seen if other.wire == ends.wire and other.spec.family is not ends.spec.family]
        for other in others[:1]:
            unlike = [rate for rate in RATES if rate in ends.rates.keys() & other.rates.keys()]
            unlike = [rate for rate in unlike if ends.rates[rate] != other.rates[rate]]
            for rate in unlike:
                at = reading.place(other.spec.at(other.key, rate))
                what = f"{ends.rates[rate]:.0f} bit/s on {ends.wire}, which has {other.rates[rate]:.0f} bit/s at {at}"
                reading.fail(ends.spec.at(ends.key, rate), f"{what}; give both the rate of the drives")
            if not unlike and "port" in (ends.key, other.key):
                what = f"the port {ends.wire} belongs to driver '{other.spec.name}' already"
                reading.fail(ends.spec.at(ends.key), f"{what}; drives of two families need a port each")
        seen.append(ends)


def _ends(spec: ConnectedDriver) -> Iterator[Ends]:
    for key in ("bus", "port"):
        section = getattr(spec.plugin.params, key, None)
        if section is None:
            continue
        rates = {rate: value for rate in RATES if (value := getattr(section, rate, None)) is not None}
        serial = section.port if key == "port" else section.channel.partition("@")[0]
        wire = os.path.realpath(serial) if serial.startswith("/") else spec.family.connection_name(spec.plugin.params)
        yield Ends(spec, key, wire, rates)
