"""A serial port by pyserial: a device, or one of its URLs (loop://, socket://, rfc2217://)."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from typing import Any

from cosim.drivers.transport.bus_load import BYTE_BITS
from cosim.drivers.transport.connection import BaseConnection, Locate, now, reason
from cosim.drivers.transport.connection_params import SerialParams
from cosim.errors import InputError, SourceLocation

CHUNK = 4096  # bytes taken at once
# Ports that are URLs cannot be waited for: a write may take so long, because to change the time-out may take longer
PATIENCE = 0.02  # s
NAP = 200e-6  # s between looks at a port that cannot be waited for


class SerialPort(BaseConnection[bytes]):
    """The program's end of a serial line; items are chunks of bytes as they come."""

    def __init__(self, params: SerialParams, locate: Locate) -> None:
        super().__init__(params.name, locate)
        self.params = params
        self._port: Any = None
        self._descriptor = -1  # of a port of this machine, not of a URL

    def send(self, item: bytes, deadline_ns: int) -> None:
        """See `Link`."""
        if self._trouble:
            raise self._failed()
        try:
            whole = self._write(item) if self._descriptor < 0 else self._pour(item, deadline_ns)
        except Exception as error:  # OSError, pyserial's, and what a port closed by another thread makes of them
            raise self._unplugged(error) from error
        if not whole:
            raise self._late()
        self.meter.sent(BYTE_BITS * len(item))

    def receive(self, deadline_ns: int) -> bytes | None:
        """See `Link`."""
        if self._trouble:
            raise self._failed()
        try:
            chunk = self._look(deadline_ns) if self._descriptor < 0 else self._draw(deadline_ns)
        except Exception as error:  # see send
            raise self._unplugged(error) from error
        if not chunk:
            return None
        self.meter.received(BYTE_BITS * len(chunk))
        return chunk

    def _pour(self, item: bytes, deadline_ns: int) -> bool:
        """Whether all went into the port by the deadline."""
        return pour(self._descriptor, item, deadline_ns) == len(item)

    def _draw(self, deadline_ns: int) -> bytes:
        descriptor = self._descriptor
        timeout = max(deadline_ns - now(), 0) * 1e-9
        if not select.select((descriptor,), (), (), timeout)[0]:
            return b""
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return b""
        if not chunk:  # a port that is gone is always ready, with nothing
            raise OSError(errno.EIO, "the device is gone")
        return chunk

    def _write(self, item: bytes) -> bool:
        import serial

        try:
            self._port.write(item)
        except serial.SerialTimeoutException:
            return False
        return True

    def _look(self, deadline_ns: int) -> bytes:
        while not (chunk := self._port.read(CHUNK)):
            rest = deadline_ns - now()
            if rest <= 0:
                break
            time.sleep(min(rest * 1e-9, NAP))
        return chunk

    def _connect(self) -> None:
        serial, p = pyserial(self._locate("port")), self.params
        if not p.port:
            raise InputError(f"a serial line needs a port{_ports()}", self._locate("port"))
        try:
            port = serial.serial_for_url(
                p.port, baudrate=round(p.baudrate), timeout=0, write_timeout=PATIENCE, exclusive=True
            )
        except (OSError, ValueError, OverflowError) as error:
            if "baud" in str(error).lower():
                what = f"'{p.port}' cannot run at {p.baudrate:g} bit/s: {reason(error)}"
                raise InputError(what, self._locate("baudrate")) from error
            raise InputError(port_mistake(p.port, error), self._locate("port")) from error
        with contextlib.suppress(Exception):  # adapters that know it answer in 1 ms instead of 16
            port.set_low_latency_mode(True)
        self._port = port
        self._descriptor = port.fileno() if type(port) is serial.Serial and os.name == "posix" else -1

    def _disconnect(self) -> None:
        port, self._port, self._descriptor = self._port, None, -1
        if port is not None:
            port.close()


def pyserial(place: SourceLocation) -> Any:
    """The package. Raises InputError at the place that needs it."""
    try:
        import serial
    except ImportError:
        raise InputError("a serial port needs pyserial: pip install 'cosim[serial]'", place) from None
    return serial


def pour(descriptor: int, data: bytes, deadline_ns: int) -> int:
    """Bytes that a descriptor which does not block took by the deadline. Raises OSError."""
    done = 0
    while True:
        with contextlib.suppress(BlockingIOError):
            done += os.write(descriptor, data[done:] if done else data)
        rest = deadline_ns - now()
        if done == len(data) or rest <= 0:
            return done
        select.select((), (descriptor,), (), rest * 1e-9)


def port_mistake(port: str, error: BaseException) -> str:
    """Why a port could not be opened, and the mend."""
    number = _number(error)
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"no such port '{port}'{_ports()}"
    if number in (errno.EBUSY, errno.EAGAIN):
        return f"the port '{port}' is busy; end the program that uses it"
    if number in (errno.EACCES, errno.EPERM):
        return f"no permission to use the port '{port}'; sudo usermod -aG dialout $USER, then log in anew"
    return f"cannot open the port '{port}': {os.strerror(number) if number else reason(error)}"


def _number(error: BaseException | None) -> int | None:
    """The errno of an error, or of the one it was made of."""
    while error is not None:
        if (number := getattr(error, "errno", None)) is not None:
            return number
        error = error.__cause__ or error.__context__
    return None


def _ports() -> str:
    from serial.tools import list_ports

    names = sorted(port.device for port in list_ports.comports())
    return f"; there are: {', '.join(names)}" if names else "; none is plugged in"
