"""The device's end of a serial link: a pseudo terminal at the path of the port."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import struct
import sys
from pathlib import Path

from cosim.core.errors import InputError
from cosim.plugins.drivers.transport.bus_load import BYTE_BITS
from cosim.plugins.drivers.transport.connection import BaseConnection, Locate, now, one_line
from cosim.plugins.drivers.transport.connection_params import SerialParams
from cosim.plugins.drivers.transport.serial import CHUNK, write_until

SLAVES = "/dev/pts/"
# struct termios2 (asm-generic/termbits.h): flags, line discipline, control characters, speeds; it has any speed
_TCGETS2 = 0x802C542A
_TERMIOS2 = struct.Struct("=4IB19s2I")
# struct flock: type, whence, start, length, process
_FLOCK = struct.Struct("hhqqi4x")


class Pty(BaseConnection[bytes]):
    """A pseudo terminal whose slave is linked at `params.port`, so that a host opens it like the port.

    Unless `ignore_baudrate` was called, a host at another baud rate hears nothing, and what it sends counts as errors.
    The slave is locked while it is emulated, so that a link in use can be distinguished from a stale one. The lock
    belongs to the open file: it ends with its program and is independent of the lock (flock) with which a host reserves
    a port.
    """

    def __init__(self, params: SerialParams, locate: Locate) -> None:
        super().__init__(params.name, locate)
        self.params = params
        self._master = self._slave = -1
        self._target = ""  # of the symbolic link
        self._any_baudrate = False

    def ignore_baudrate(self) -> None:
        """The port is one of USB, which has no baud rate: a host may set any."""
        self._any_baudrate = True

    def send(self, item: bytes, deadline_ns: int) -> None:
        """See `Connection`. What the host does not read by the deadline is dropped, as by a port with a full buffer."""
        if self._unusable:
            raise self._unusable_error()
        try:
            sent = self._baudrate_matches() and write_until(self._master, item, deadline_ns) == len(item)
        except (OSError, ValueError) as error:
            raise self.connection_failed(error) from error
        if sent:
            self.meter.sent(BYTE_BITS * len(item))
        else:
            self.meter.errors += 1

    def receive(self, deadline_ns: int) -> bytes | None:
        """See `Connection`."""
        while not self._unusable:
            rest = deadline_ns - now()
            try:
                if not select.select((self._master,), (), (), max(rest, 0) * 1e-9)[0]:
                    return None
                chunk = os.read(self._master, CHUNK)
                matches = self._baudrate_matches()
            except (OSError, ValueError) as error:
                raise self.connection_failed(error) from error
            if matches:
                self.meter.received(BYTE_BITS * len(chunk))
                return chunk
            self.meter.errors += 1
            if rest <= 0:
                return None
        raise self._unusable_error()

    def _baudrate_matches(self) -> bool:
        """Whether the host's baud rate is the device's."""
        if self._any_baudrate:
            return True
        import fcntl

        raw = fcntl.ioctl(self._master, _TCGETS2, bytes(_TERMIOS2.size))
        return _TERMIOS2.unpack(raw)[-1] == round(self.params.baudrate)

    def _connect(self) -> None:
        if sys.platform != "linux":
            raise InputError("serial ports can be emulated on Linux only", self._locate("port"))
        import tty

        path = Path(self.params.port)
        if problem := _link_error(self.params.port):
            raise InputError(problem, self._locate("port"))
        # the slave stays open here, so that the master does not fail when a host closes it
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self._target = os.ttyname(self._slave)
        try:
            _lock(self._slave)
            path.unlink(missing_ok=True)
            os.symlink(self._target, path)
        except OSError as error:
            self._disconnect()
            if error.errno == errno.EEXIST:  # another program was faster
                raise InputError(_in_use(path), self._locate("port")) from error
            what = f"cannot make a port at '{path}': {one_line(error)}; use a writable path, such as /tmp/tty"
            raise InputError(what, self._locate("port")) from error

    def _disconnect(self) -> None:
        path, target, self._target = Path(self.params.port), self._target, ""
        with contextlib.suppress(OSError):
            if target and os.readlink(path) == target:
                path.unlink()
        for descriptor in {self._master, self._slave} - {-1}:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._master = self._slave = -1


def _lock(descriptor: int) -> None:
    """Lock a file until it is closed. Raises BlockingIOError if it is locked."""
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


def _is_emulated(slave: str) -> bool:
    """Whether a program emulates this pseudo terminal."""
    try:
        descriptor = os.open(slave, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        return error.errno == errno.EACCES  # it belongs to another user
    try:
        _lock(descriptor)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _in_use(path: Path) -> str:
    return f"{path}: another program emulates this port; end it first"


def _link_error(port: str) -> str:
    """Why no link can be made at this path, "" if one can; a stale link of an earlier pseudo terminal is replaced."""
    if "://" in port or not port:
        return f"'{port}' cannot be emulated; use a path for the port, such as /tmp/tty"
    path = Path(port)
    try:
        target = os.readlink(path)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return "" if path.parent.is_dir() else f"no folder '{path.parent}' for the port '{port}'; make it"
        target = ""
    if not target.startswith(SLAVES):
        return f"'{port}' exists and is not the port of an emulator; remove it or use another path"
    return _in_use(path) if _is_emulated(target) else ""
