"""A serial port through pyserial: a device, or one of its URLs (loop://, socket://, rfc2217://)."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING

from cosim.core.errors import InputError, SourceLocation
from cosim.plugins.drivers.transport.bus_load import BYTE_BITS
from cosim.plugins.drivers.transport.connection import BaseConnection, Locate, now, one_line
from cosim.plugins.drivers.transport.connection_params import SerialParams

if TYPE_CHECKING:
    from serial.serialutil import SerialBase

CHUNK = 4096  # bytes taken at once
# `select` does not work on ports that are URLs. Their write time-out is constant: changing it may take longer
WRITE_TIMEOUT = 0.02  # s
RETRY_PAUSE = 200e-6  # s between two reads of such a port


class SerialPort(BaseConnection[bytes]):
    """The program's end of a serial link; items are chunks of bytes as they are received."""

    def __init__(self, params: SerialParams, locate: Locate) -> None:
        super().__init__(params.name, locate)
        self.params = params
        self._port: SerialBase | None = None
        self._descriptor = -1  # of a local port; -1 for a URL

    @property
    def descriptor(self) -> int:
        """The file descriptor of an open local port; negative otherwise."""
        return self._descriptor

    @property
    def why_not_compiled(self) -> str:
        """See `Connection`."""
        if "://" in self.params.port:
            return f"{self.params.port} is a port in Python"
        return "" if sys.platform == "linux" else "serial ports in machine code need Linux"

    def check(self) -> InputError | None:
        """See `BaseConnection`."""
        port = self.params.port
        try:
            pyserial(self._locate("port"))
        except InputError as missing:
            return missing
        self._check_given()
        if "://" not in port and os.name == "posix" and not os.path.exists(port):
            return InputError(port_error_message(port, FileNotFoundError(errno.ENOENT, "")), self._locate("port"))
        return None

    def _check_given(self) -> None:
        if not self.params.port:
            raise InputError(f"a serial connection needs a port{_ports()}", self._locate("port"))

    def send(self, item: bytes, deadline_ns: int) -> None:
        """See `Connection`."""
        if self._unusable:
            raise self._unusable_error()
        try:
            whole = self._write_port(item) if self._descriptor < 0 else self._write_descriptor(item, deadline_ns)
        except Exception as error:  # OSError, pyserial's own, any when another thread closes the port
            raise self.connection_failed(error) from error
        if not whole:
            raise self.not_sent()
        self.meter.sent(BYTE_BITS * len(item))

    def receive(self, deadline_ns: int) -> bytes | None:
        """See `Connection`."""
        if self._unusable:
            raise self._unusable_error()
        try:
            chunk = self._read_port(deadline_ns) if self._descriptor < 0 else self._read_descriptor(deadline_ns)
        except Exception as error:  # see send
            raise self.connection_failed(error) from error
        if not chunk:
            return None
        self.meter.received(BYTE_BITS * len(chunk))
        return chunk

    def _write_descriptor(self, item: bytes, deadline_ns: int) -> bool:
        """Whether all bytes were written by the deadline."""
        return write_until(self._descriptor, item, deadline_ns) == len(item)

    def _read_descriptor(self, deadline_ns: int) -> bytes:
        descriptor = self._descriptor
        timeout = max(deadline_ns - now(), 0) * 1e-9
        if not select.select((descriptor,), (), (), timeout)[0]:
            return b""
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return b""
        if not chunk:  # a removed port is always readable, without data
            raise OSError(errno.EIO, "the device was removed")
        return chunk

    def _write_port(self, item: bytes) -> bool:
        import serial

        assert self._port is not None
        try:
            self._port.write(item)
        except serial.SerialTimeoutException:
            return False
        return True

    def _read_port(self, deadline_ns: int) -> bytes:
        assert self._port is not None
        while not (chunk := self._port.read(CHUNK)):
            rest = deadline_ns - now()
            if rest <= 0:
                break
            time.sleep(min(rest * 1e-9, RETRY_PAUSE))
        return chunk

    def _connect(self) -> None:
        serial, p = pyserial(self._locate("port")), self.params
        self._check_given()
        try:
            port = serial.serial_for_url(
                p.port, baudrate=round(p.baudrate), timeout=0, write_timeout=WRITE_TIMEOUT, exclusive=True
            )
        except (OSError, ValueError, OverflowError) as error:
            if "baud" in str(error).lower():
                what = f"'{p.port}' cannot run at {p.baudrate:g} bit/s: {one_line(error)}"
                raise InputError(what, self._locate("baudrate")) from error
            raise InputError(port_error_message(p.port, error), self._locate("port")) from error
        with contextlib.suppress(Exception):  # adapters that support it answer in 1 ms instead of 16
            port.set_low_latency_mode(True)
        self._port = port
        self._descriptor = port.fileno() if type(port) is serial.Serial and os.name == "posix" else -1

    def _disconnect(self) -> None:
        port, self._port, self._descriptor = self._port, None, -1
        if port is not None:
            port.close()


def pyserial(place: SourceLocation) -> ModuleType:
    """The module `serial`. Raises InputError at the place that needs it."""
    try:
        import serial
    except ImportError:
        raise InputError("a serial port needs pyserial: pip install pyserial", place) from None
    return serial


def write_until(descriptor: int, data: bytes, deadline_ns: int) -> int:
    """Write to a non-blocking descriptor; the number of bytes written by the deadline. Raises OSError."""
    done = 0
    while True:
        with contextlib.suppress(BlockingIOError):
            done += os.write(descriptor, data[done:] if done else data)
        rest = deadline_ns - now()
        if done == len(data) or rest <= 0:
            return done
        select.select((), (descriptor,), (), rest * 1e-9)


def port_error_message(port: str, error: BaseException) -> str:
    """Why a port could not be opened, and the fix."""
    number = _number(error)
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"no such port '{port}'{_ports()}"
    if number in (errno.EBUSY, errno.EAGAIN):
        return f"the port '{port}' is busy; end the program that uses it"
    if number in (errno.EACCES, errno.EPERM):
        return f"no permission to use the port '{port}'; sudo usermod -aG dialout $USER, then log in again"
    if port.startswith(("socket://", "rfc2217://")) and (number or 0) <= 0:  # no form of an address, or no such host
        example = f"{port.partition(':')[0]}://192.168.1.10:4001"
        return f"'{port}' is no address of a host; give its name and a port from 1 to 65535, such as {example}"
    return f"cannot open the port '{port}': {os.strerror(number) if number else one_line(error)}"


def _number(error: BaseException | None) -> int | None:
    """The errno of an error or of its cause."""
    while error is not None:
        if (number := getattr(error, "errno", None)) is not None:
            return number
        error = error.__cause__ or error.__context__
    return None


def _ports() -> str:
    from serial.tools import list_ports

    names = sorted(port.device for port in list_ports.comports())
    return f"; there are: {', '.join(names)}" if names else "; none is plugged in"
