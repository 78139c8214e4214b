"""The parameters of connections to drives, as a rig gives them."""

from __future__ import annotations

from cosim.core.types import param, params

OWN_KEYS = ("interface", "channel", "bitrate", "data_bitrate", "fd")
RESERVED = {"receive_own_messages": "a node never receives its own frames", "can_filters": "drivers set the filters"}


@params
class CanParams:
    """A CAN bus."""

    interface: str = param(doc="of python-can: socketcan, slcan, udp_multicast, virtual, pcan, kvaser, …")
    channel: str = param(doc="can0, the port of an adapter, a multicast address, the name of a virtual bus")
    bitrate: float = param(unit="bit/s", min=1, default=1e6, doc="SocketCAN: as in `ip link set … bitrate`")
    data_bitrate: float | None = param(unit="bit/s", min=1, default=None, doc="of the data of CAN FD frames")
    fd: bool = param(default=False, doc="CAN FD frames too")
    options: dict | None = param(default=None, doc="further keywords of the interface, as python-can names them")

    def __post_init__(self) -> None:
        if self.data_bitrate is not None and not self.fd:
            raise ValueError("'data_bitrate' is for CAN FD; give 'fd: true' as well")
        for key in self.options or {}:
            if key in OWN_KEYS:
                raise ValueError(f"give '{key}' next to 'options', not in it")
            if key in RESERVED:
                raise ValueError(f"leave '{key}' out of 'options'; {RESERVED[key]}")

    @property
    def name(self) -> str:
        """The name of the bus in messages."""
        return f"{self.interface} {self.channel}"


@params
class SerialParams:
    """A serial port with eight bits of data, no parity and one stop bit."""

    port: str = param(doc="/dev/ttyUSB0, COM3, or a URL of pyserial: loop://, socket://, rfc2217://")
    baudrate: float = param(unit="bit/s", min=1, default=1e6)

    @property
    def name(self) -> str:
        """The name of the serial link in messages."""
        return self.port


@params
class UartParams(SerialParams):
    """A serial port, by default with the bit rate at which most microcontrollers are delivered."""

    baudrate: float = param(unit="bit/s", min=1, default=115200.0)
