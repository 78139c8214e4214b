"""Opening a CAN bus with python-can, and the errors when that fails."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosim.core.errors import InputError, did_you_mean
from cosim.plugins.drivers.transport.connection import Locate, one_line
from cosim.plugins.drivers.transport.connection_params import CanParams
from cosim.plugins.drivers.transport.serial import port_error_message, pyserial

if TYPE_CHECKING:
    from can import BusABC, Message

# Arguments of python-can besides the channel and the bit rates.
# slcan: reads that do not wait. udp_multicast: messages stay on this machine.
DEFAULTS: dict[str, dict[str, object]] = {"slcan": {"timeout": 0}, "udp_multicast": {"hop_limit": 0}}
SAMPLE = {"f_clock": 80_000_000, "nom_sample_point": 80.0, "data_sample_point": 80.0}
CAN_DEVICE = "280"  # ARPHRD_CAN, in /sys/class/net/*/type
DEVICES = Path("/sys/class/net")


def open_bus(params: CanParams, locate: Locate) -> BusABC:
    """Raises InputError."""
    if (missing := check_bus(params, locate)) is not None:
        raise missing
    import can

    quiet = logging.getLogger("can")
    if not quiet.handlers:  # otherwise Python writes its warnings to the terminal
        quiet.addHandler(logging.NullHandler())
    try:
        return can.Bus(**_keywords(params), ignore_config=True)
    except Exception as error:  # vendors' libraries raise what they like
        raise opening_error(params, error, locate) from error


@cache
def message_type() -> type[Message]:
    """The class of messages that nobody changes once they are made, so that copies may share their data: a virtual bus
    copies a message for each receiver, and copying the data takes longer than all the rest."""
    import can

    class FinalMessage(can.Message):
        __slots__ = ()

        def __deepcopy__(self, memo: dict[int, Any] | None) -> can.Message:
            return self.__copy__()

    return FinalMessage


def opening_error(params: CanParams, error: Exception, locate: Locate) -> InputError:
    """The error of a bus that could not be opened."""
    interface, what = params.interface, one_line(error)
    if isinstance(error.__cause__ or error, ValueError):  # python-can may wrap it
        if "data bitrate" in what.lower():
            rate = f"{interface} cannot send data at {params.data_bitrate:g} bit/s: {what}"
            return InputError(rate, locate("data_bitrate"))
        if "bitrate" in what.lower():
            return InputError(f"{interface} cannot run at {params.bitrate:g} bit/s: {what}", locate("bitrate"))
    if interface == "slcan":
        return InputError(port_error_message(params.channel.partition("@")[0], error), locate("channel"))
    if isinstance(error, (NotImplementedError, ImportError, NameError)):
        fix = "install the manufacturer's driver"
        return InputError(f"the interface {interface} does not work here: {what}; {fix}", locate("interface"))
    fix = "check that the adapter is plugged in and its driver is installed"
    return InputError(f"cannot open {params.name}: {what}; {fix}", locate("channel"))


def check_bus(params: CanParams, locate: Locate) -> InputError | None:
    """Raises InputError for parameters that python-can would refuse with a less helpful message; the error of what is
    missing on this machine now."""
    try:
        from can import VALID_INTERFACES
    except ImportError:
        return InputError("a CAN bus needs python-can: pip install python-can", locate("interface"))
    interface, channel = params.interface, params.channel
    if interface not in VALID_INTERFACES:
        known = did_you_mean(interface, sorted(VALID_INTERFACES))
        raise InputError(f"python-can has no interface '{interface}'{known}", locate("interface"))
    if not channel:
        raise InputError(f"the interface {interface} needs a channel", locate("channel"))
    if interface == "udp_multicast" and (what := _multicast_error(params)):
        raise InputError(what, locate("channel"))
    if interface == "socketcan" and (what := _socketcan_error(params)):
        return InputError(what, locate("channel"))
    if interface == "slcan":
        try:
            pyserial(locate("interface"))
        except InputError as missing:
            return missing
    return None


def _keywords(params: CanParams) -> dict[str, Any]:
    """Arguments of `can.Bus`."""
    interface, bitrate = params.interface, round(params.bitrate)
    keywords: dict[str, Any] = {"interface": interface, "channel": params.channel, "bitrate": bitrate}
    keywords |= DEFAULTS.get(interface, {})
    data_bitrate = None if params.data_bitrate is None else round(params.data_bitrate)
    if interface == "slcan":
        if data_bitrate is not None:  # slcan takes it only in this form
            from can import BitTimingFd

            rates = {"nom_bitrate": bitrate, "data_bitrate": data_bitrate}
            keywords["timing"] = BitTimingFd.from_sample_point(**SAMPLE, **rates)
    else:
        if params.fd or interface == "udp_multicast":  # its default is CAN FD
            keywords["fd"] = params.fd
        if data_bitrate is not None:
            keywords["data_bitrate"] = data_bitrate
    return keywords | (params.options or {})


def _multicast_error(params: CanParams) -> str:
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(params.channel).is_multicast:
            return ""
    return f"'{params.channel}' is not a multicast address; use one such as 239.74.163.2"


def _socketcan_error(params: CanParams) -> str:
    kinds = {path.parent.name: path.read_text().strip() for path in DEVICES.glob("*/type")}
    buses = sorted(name for name, kind in kinds.items() if kind == CAN_DEVICE)
    channel = params.channel
    rates = f"bitrate {params.bitrate:.0f}" + (
        f" dbitrate {params.data_bitrate:.0f} fd on" if params.data_bitrate else ""
    )
    up = f"sudo ip link set {channel} up type can {rates}"
    if channel not in buses:
        present = f"there are: {', '.join(buses)}" if buses else f"there is none; plug the adapter in, then: {up}"
        return f"no CAN device '{channel}'; {present}"
    if not int((DEVICES / channel / "flags").read_text(), 16) & 1:  # IFF_UP
        return f"the CAN device '{channel}' is down; {up}"
    return ""
