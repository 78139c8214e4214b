"""How a CAN bus is opened with python-can, and what is said when it cannot be."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosim.drivers.transport.connection import Locate, reason
from cosim.drivers.transport.connection_params import CanParams
from cosim.drivers.transport.serial import port_mistake, pyserial
from cosim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from can import BusABC

# What python-can is told beside the channel and the rates.
# slcan: reads that do not wait. udp_multicast: messages stay on this machine.
DEFAULTS: dict[str, dict[str, Any]] = {"slcan": {"timeout": 0}, "udp_multicast": {"hop_limit": 0}}
SAMPLE = {"f_clock": 80_000_000, "nom_sample_point": 80.0, "data_sample_point": 80.0}
CAN_DEVICE = "280"  # ARPHRD_CAN, in /sys/class/net/*/type
DEVICES = Path("/sys/class/net")


def open_bus(params: CanParams, locate: Locate) -> BusABC:
    """Raises InputError."""
    try:
        import can
    except ImportError:
        raise InputError("a CAN bus needs python-can: pip install 'cosim[can]'", locate("interface")) from None
    quiet = logging.getLogger("can")
    if not quiet.handlers:  # else Python writes its warnings to the terminal
        quiet.addHandler(logging.NullHandler())
    _check(params, can.VALID_INTERFACES, locate)
    try:
        return can.Bus(**_keywords(params, can), ignore_config=True)
    except Exception as error:  # vendors' libraries raise what they like
        raise mistake(params, error, locate) from error


def mistake(params: CanParams, error: Exception, locate: Locate) -> InputError:
    """Why a bus could not be opened."""
    interface, what = params.interface, reason(error)
    if isinstance(error.__cause__ or error, ValueError):  # python-can may wrap it
        if "data bitrate" in what.lower():
            rate = f"{interface} cannot send data at {params.data_bitrate:g} bit/s: {what}"
            return InputError(rate, locate("data_bitrate"))
        if "bitrate" in what.lower():
            return InputError(f"{interface} cannot run at {params.bitrate:g} bit/s: {what}", locate("bitrate"))
    if interface == "slcan":
        return InputError(port_mistake(params.channel.partition("@")[0], error), locate("channel"))
    if isinstance(error, (NotImplementedError, ImportError, NameError)):
        mend = "install the driver of its maker"
        return InputError(f"the interface {interface} does not work here: {what}; {mend}", locate("interface"))
    mend = "check that the adapter is plugged in and its driver is installed"
    return InputError(f"cannot open {params.name}: {what}; {mend}", locate("channel"))


def _check(params: CanParams, interfaces: frozenset[str], locate: Locate) -> None:
    """Mistakes that can be told better than python-can does, and before it does anything."""
    interface, channel = params.interface, params.channel
    if interface not in interfaces:
        known = did_you_mean(interface, sorted(interfaces))
        raise InputError(f"python-can has no interface '{interface}'{known}", locate("interface"))
    if not channel:
        raise InputError(f"the interface {interface} needs a channel", locate("channel"))
    if interface == "slcan":
        pyserial(locate("interface"))
    check = {"socketcan": _socketcan_mistake, "udp_multicast": _multicast_mistake}.get(interface)
    if check is not None and (what := check(params)):
        raise InputError(what, locate("channel"))


def _keywords(params: CanParams, can: Any) -> dict[str, Any]:
    """What python-can is told."""
    interface, bitrate = params.interface, round(params.bitrate)
    words: dict[str, Any] = {"interface": interface, "channel": params.channel, "bitrate": bitrate}
    words |= DEFAULTS.get(interface, {})
    data_bitrate = None if params.data_bitrate is None else round(params.data_bitrate)
    if interface == "slcan":
        if data_bitrate is not None:  # the only way to tell it
            rates = {"nom_bitrate": bitrate, "data_bitrate": data_bitrate}
            words["timing"] = can.BitTimingFd.from_sample_point(**SAMPLE, **rates)
    else:
        if params.fd or interface == "udp_multicast":  # which takes them unless it is told not to
            words["fd"] = params.fd
        if data_bitrate is not None:
            words["data_bitrate"] = data_bitrate
    return words | (params.options or {})


def _multicast_mistake(params: CanParams) -> str:
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(params.channel).is_multicast:
            return ""
    return f"'{params.channel}' is no multicast address; take one such as 239.74.163.2"


def _socketcan_mistake(params: CanParams) -> str:
    kinds = {path.parent.name: path.read_text().strip() for path in DEVICES.glob("*/type")}
    buses = sorted(name for name, kind in kinds.items() if kind == CAN_DEVICE)
    channel = params.channel
    rates = f"bitrate {params.bitrate:.0f}" + (
        f" dbitrate {params.data_bitrate:.0f} fd on" if params.data_bitrate else ""
    )
    up = f"sudo ip link set {channel} up type can {rates}"
    if channel not in buses:
        there = f"there are: {', '.join(buses)}" if buses else f"there is none; plug the adapter in, then: {up}"
        return f"no CAN device '{channel}'; {there}"
    if not int((DEVICES / channel / "flags").read_text(), 16) & 1:  # IFF_UP
        return f"the CAN device '{channel}' is down; {up}"
    return ""
