"""An emulated drive on a serial link: the ASCII protocol, with one axis per motor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.common.unknown_requests import UnknownRequests, shown
from cosim.plugins.drivers.odrive import ascii_codec as ascii_
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.axis import Axis
from cosim.plugins.drivers.odrive.emulator import FIRMWARE, HARDWARE, SERIAL, write
from cosim.plugins.drivers.odrive.properties import PARAMETERS

BAD_FORMAT, BAD_PROPERTY = "invalid command format", "invalid property"
HELP = (
    *("Please see documentation for more details", "", "Available commands syntax reference:"),
    *("Position: q axis pos vel-lim I-lim", "Position: p axis pos vel-ff I-ff", "Velocity: v axis vel I-ff"),
    *("Torque: c axis T", "", "Properties start at odrive root, such as axis0.requested_state", "Read: r property"),
    *("Write: w property value", "", "Save config: ss", "Erase config: se", "Reboot: sr"),
)


class AsciiEmulator:
    """A board; `axes` by motor number."""

    def __init__(self, motors: Sequence[Motor], numbers: Sequence[int], endstops: Sequence[bool]) -> None:
        rows = zip(numbers, motors, endstops, strict=True)
        self.axes = {number: Axis(motor, number, switch) for number, motor, switch in rows}
        self.hardware, self.firmware, self.serial = HARDWARE, FIRMWARE, SERIAL
        self.lines, self.unknown = ascii_.splitter(), UnknownRequests()

    def handle(self, item: bytes, t_ns: int) -> list[bytes]:
        """The answers to a chunk of bytes."""
        answers = []
        for raw in self.lines.feed(item):
            found = ascii_.unwrap(raw)
            if found is not None and found.text:
                answer_lines = self._execute(found.text, t_ns)
                answers += [ascii_.line(text, found.checked, "\r\n") for text in answer_lines]
        return answers

    def process(self, t_ns: int) -> list[bytes]:
        """One step; the drive sends nothing unrequested."""
        for axis in self.axes.values():
            axis.process(t_ns)
        return []

    def reset(self, t_ns: int) -> None:
        self.lines = ascii_.splitter()
        for axis in self.axes.values():
            axis.reset(t_ns)

    def _execute(self, text: str, t_ns: int) -> tuple[str, ...]:
        """The lines of the answer."""
        letter = text[0]
        if letter in _COMMANDS:
            return self._command(text, t_ns)
        if letter == "r":
            return (self._read(text[1:].split()[:1]),)
        if letter == "w":
            return self._write(text[1:].split(), t_ns)
        if letter == "s":
            self._system(text[1:2], t_ns)
            return ()
        if letter == "h":
            return HELP
        if letter == "i":
            hardware = "Hardware version: {}.{}-{}V".format(*self.hardware)
            firmware = "Firmware version: {}.{}.{}".format(*self.firmware)
            return hardware, firmware, f"Serial number: {self.serial:012X}"
        self.unknown.note(f"command '{shown(text[:1])}', answered by 'unknown command'")
        return ("unknown command",)

    def _command(self, text: str, t_ns: int) -> tuple[str, ...]:
        """A command to one axis; all but a request for feedback feed its watchdog."""
        request = ascii_.parse(text)
        least, action = _COMMANDS[text[0]]
        if request is None or len(request.numbers) < least:
            return (BAD_FORMAT,)
        axis = self.axes.get(request.axis)
        if axis is None:
            return (f"invalid motor {request.axis}",)
        if request.letter == "f":
            return (f"{axis.pos_estimate:f} {axis.vel_estimate:f}",)
        action(axis, request.numbers)
        axis.feed(t_ns)
        return ()

    def _read(self, names: list[str]) -> str:
        if not names:
            return BAD_FORMAT
        value = self._root().get(names[0])
        if value is None:
            axis, name = self._parameter(names[0])
            if axis is None:
                self.unknown.note(f"property '{shown(names[0])}', answered by '{BAD_PROPERTY}'")
                return BAD_PROPERTY
            value = getattr(axis, PARAMETERS[name][0])
        return f"{value:f}" if isinstance(value, float) else f"{value:d}"

    def _write(self, words: list[str], t_ns: int) -> tuple[str, ...]:
        """A successful write has no answer."""
        if not words:
            return (BAD_FORMAT,)
        axis, name = self._parameter(words[0])
        if axis is None:
            self.unknown.note(f"property '{shown(words[0])}', answered by '{BAD_PROPERTY}'")
            return (BAD_PROPERTY,)
        value = ascii_.number(words[1]) if len(words) > 1 else None
        now = getattr(axis, PARAMETERS[name][0])
        if value is None or not (isinstance(now, float) or isfinite(value)):
            return ("not implemented",)
        kind = type(now)
        return () if write(axis, name, kind(value), t_ns) else ("not implemented",)

    def _parameter(self, name: str) -> tuple[Axis | None, str]:
        """axis1.config.… → the axis and the rest of the name."""
        head, _, rest = name.partition(".")
        number = head[4:]
        if head[:4] != "axis" or number not in ("0", "1") or rest not in PARAMETERS:
            return None, ""
        return self.axes.get(int(number)), rest

    def _root(self) -> dict[str, float]:
        """Properties of the board."""
        kinds = (("hw_version", self.hardware), ("fw_version", self.firmware))
        parts = {"hw_version": ("major", "minor", "variant"), "fw_version": ("major", "minor", "revision")}
        versions = {f"{k}_{part}": n for k, ns in kinds for part, n in zip(parts[k], ns, strict=True)}
        voltage = next((float(axis.motor.voltage) for axis in self.axes.values()), 0.0)
        return {"vbus_voltage": voltage, "serial_number": self.serial, "fw_version_unreleased": 0, **versions}

    def _system(self, letter: str, t_ns: int) -> None:
        for axis in self.axes.values():
            if letter == "c":
                axis.clear_errors()
            elif letter == "s" and not axis.armed:
                axis.save()
            elif letter == "e":
                axis.configure()
                axis.save()
            if letter in ("e", "r"):
                axis.reset(t_ns)


# --- commands to one axis: smallest number of arguments, action -------------------------------------


def _position(axis: Axis, numbers: tuple[float, ...]) -> None:
    axis.control_mode = codes.POSITION_CONTROL
    for attribute, number in zip(("input_vel", "input_torque"), numbers[1:], strict=False):
        setattr(axis, attribute, number)
    axis.move(numbers[0])


def _position_within(axis: Axis, numbers: tuple[float, ...]) -> None:
    axis.control_mode = codes.POSITION_CONTROL
    for attribute, number in zip(("vel_limit", "torque_soft_max"), numbers[1:], strict=False):
        setattr(axis, attribute, number)
    for number in numbers[2:3]:  # the limit is symmetric
        axis.torque_soft_min = -number
    axis.move(numbers[0])


def _velocity(axis: Axis, numbers: tuple[float, ...]) -> None:
    axis.control_mode, axis.input_vel = codes.VELOCITY_CONTROL, numbers[0]
    if len(numbers) > 1:
        axis.input_torque = numbers[1]


def _torque(axis: Axis, numbers: tuple[float, ...]) -> None:
    axis.control_mode, axis.input_torque = codes.TORQUE_CONTROL, numbers[0]


def _trajectory(axis: Axis, numbers: tuple[float, ...]) -> None:
    axis.control_mode, axis.input_mode = codes.POSITION_CONTROL, codes.TRAP_TRAJ
    axis.move(numbers[0])


def _nothing(axis: Axis, numbers: tuple[float, ...]) -> None:
    """For commands that only feed the watchdog or request."""


_COMMANDS: dict[str, tuple[int, Callable[[Axis, tuple[float, ...]], None]]] = {
    "p": (1, _position),
    "q": (1, _position_within),
    "v": (1, _velocity),
    "c": (1, _torque),
    "t": (1, _trajectory),
    "f": (0, _nothing),
    "u": (0, _nothing),
}
