"""The diagnostic console of an emulated drive: `conf`, `tel` and `d` as used by mjbots' tools and `Stream`.

Source: mjbots' diagnostic protocol reference. Lines end with a line feed or a carriage return; an answer ends with a
line `OK` or `ERR …`, except those to `conf get` and of binary telemetry, which are the value alone.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import partial

from cosim.plugins.drivers.common.unknown_requests import shown
from cosim.plugins.drivers.moteus.device import config, telemetry
from cosim.plugins.drivers.moteus.device.commands import NOTHING
from cosim.plugins.drivers.moteus.device.servo import Servo
from cosim.plugins.drivers.moteus.device.sweep import Sweep
from cosim.plugins.drivers.moteus.registers import Mode

_MAX_LENGTH = 128
_MAX_UNREAD = 4096  # bytes, beyond which no telemetry is added
OK = b"OK\r\n"
_UNKNOWN = b"ERR unknown subcommand\r\n"

_OPTIONS = {
    "p": "kp_scale",
    "d": "kd_scale",
    "i": "ilimit_scale",
    "s": "stop_position",
    "f": "feedforward",
    "t": "timeout",
    "v": "velocity_limit",
    "a": "accel_limit",
    "o": "fixed_voltage",
    "c": "fixed_current",
    "b": "ignore_bounds",
    "q": "axis",
}
_NEEDS_WINDINGS = frozenset(("pwm", "vdq", "ind", "cal", "cali"))
_MOVES = {  # word: (mode, fields of its numbers)
    "pos": (Mode.POSITION, ("position", "velocity", "max_torque")),
    "tmt": (Mode.TIMEOUT, ("position", "velocity", "max_torque")),
    "zero": (Mode.ZERO_VELOCITY, ("position", "velocity", "max_torque")),
    "within": (Mode.STAY_WITHIN, ("lower", "upper", "max_torque")),
    "dq": (Mode.CURRENT, ("d_current", "q_current")),
    "pwm": (Mode.VOLTAGE_FOC, ("theta", "voltage", "theta_rate")),
    "vdq": (Mode.VOLTAGE_DQ, ("d_voltage", "q_voltage")),
    "ind": (Mode.MEASURE_INDUCTANCE, ("d_voltage", "period")),
    "stop": (Mode.STOPPED, ()),
    "brake": (Mode.BRAKE, ()),
}


def receive(servo: Servo, data: bytes, t_ns: int) -> None:
    """Take text from the bus; every complete line is executed and answered."""
    space = _MAX_LENGTH - len(servo.inbox)
    *lines, rest = (servo.inbox + data[:space]).replace(b"\r", b"\n").split(b"\n")
    servo.inbox = rest if len(rest) < _MAX_LENGTH else b""
    for line in lines:
        words = line.decode("latin1").split()
        if words:
            group = _GROUPS.get(words[0])
            answer = group(servo, words[1:], t_ns) if group else b"ERR unknown command\r\n"
            if answer.startswith((b"ERR unknown command", b"ERR unknown subcommand")):
                what = shown(" ".join(words[:2]))
                servo.unknown.note(f"node {servo.config['id.id']}: '{what}' on its console, answered by an error")
            servo.outbox += answer
    if len(servo.outbox) > 1 << 16:  # no host reads
        servo.outbox, servo.unacknowledged = b"", 0


def _conf(servo: Servo, words: list[str], t_ns: int) -> bytes:
    match words:
        case ["get", name]:
            if name.split(".")[0] not in config.groups(servo.config):
                return b"ERR unknown group\r\n"
            if name not in servo.config:
                return b"ERR error reading\r\n"
            return f"{config.formatted(servo.config[name])}\r\n".encode()
        case ["set", name, text]:
            if name.split(".")[0] not in config.groups(servo.config):
                return b"ERR unknown group\r\n"
            if not config.change(servo.config, name, text):
                return b"ERR error setting\r\n"
            servo.config_changed(name)
            return OK
        case ["enumerate", *group]:
            if group and group[0] not in config.groups(servo.config):
                return b"ERR unknown group\r\n"
            formatted = (item for item in servo.config.items() if not group or item[0].split(".")[0] == group[0])
            return "".join(f"{name} {config.formatted(value)}\r\n" for name, value in formatted).encode() + OK
        case ["list"]:
            return "".join(f"{group}\r\n" for group in config.groups(servo.config)).encode() + OK
        case ["write"]:
            servo.saved = dict(servo.config)
        case ["load"]:
            servo.config = dict(servo.saved)
        case ["default"]:
            node = int(servo.config["id.id"])
            servo.config = config.factory(node, servo.uuid, servo.motor)
        case _:
            return _UNKNOWN
    return OK


def _tel(servo: Servo, words: list[str], t_ns: int) -> bytes:
    match words:
        case ["list"]:
            return "".join(f"{name}\r\n" for name in telemetry.CHANNELS).encode() + OK
        case ["stop"]:
            servo.rates = {}
            return OK
        case ["text"]:
            servo.text = frozenset(telemetry.CHANNELS)
            return OK
        case [("get" | "schema" | "fmt" | "rate"), name, *_] if name not in telemetry.CHANNELS:
            return b"ERR unknown name\r\n"
        case ["schema", name]:
            blob = telemetry.schema(name)
            return f"schema {name}\r\n".encode() + struct.pack("<I", len(blob)) + blob
        case ["get", name]:
            return _record(servo, name) + (OK if name in servo.text else b"")
        case ["rate", name, period]:  # ms, 0: none
            milliseconds = _number(period)
            if not _is_finite(milliseconds):
                return b"ERR unknown rate\r\n"
            servo.rates.pop(name, None)
            if milliseconds:
                servo.rates[name] = round(1e6 * max(milliseconds, 1.0)), t_ns
            return OK
        case ["fmt", name, kind]:
            servo.text = servo.text - {name} if kind == "0" else servo.text | {name}
            return OK
    return _UNKNOWN


def _record(servo: Servo, name: str) -> bytes:
    """Of a telemetry channel, in the form that is selected."""
    if name in servo.text:
        return telemetry.text(servo, name)
    blob = telemetry.binary(servo, name)
    return f"emit {name}\r\n".encode() + struct.pack("<I", len(blob)) + blob


def emit(servo: Servo, t_ns: int) -> None:
    """Add the records that are due by `tel rate`, as long as the host reads them."""
    for name, (period, due) in servo.rates.items():
        if t_ns >= due and len(servo.outbox) < _MAX_UNREAD:
            servo.rates[name] = period, max(due + period, t_ns)
            servo.outbox += _record(servo, name)


def _d(servo: Servo, words: list[str], t_ns: int) -> bytes:
    match words:
        case [word, *_] if word in _NEEDS_WINDINGS and servo.windings is None:
            return b"ERR motor not configured\r\n"
        case ["cal" | "cali" as kind, *rest]:
            return _sweep(servo, kind, rest)
        case ["pwm", _, _]:
            return _d(servo, [*words, "0"], t_ns)
        case ["exact" | "index" | "nearest" | "rezero" as kind, *rest] if rest or kind == "rezero":
            value = _number(rest[0]) if rest else 0.0
            if value is None:
                return b"ERR missing index value\r\n"
            servo.set_output(value, exact=kind in ("exact", "index"))
        case ["cfg-set-output", *rest]:
            value = _number(rest[0]) if rest else 0.0
            if value is None or not math.isfinite(value):
                return b"ERR missing index value\r\n"
            servo.configure_output(value)
        case ["req-reindex"]:
            servo.require_reindex()
        case ["recapture"]:
            servo.recapture()
        case [word, *rest] if word in _MOVES:
            mode, fields = _MOVES[word]
            numbers = [_number(text) for text in rest[: len(fields)]]
            if len(numbers) < len(fields) or None in numbers:
                return b"ERR missing value\r\n"
            given = dict(zip(fields, numbers, strict=True))
            options = {_OPTIONS.get(text[0]): _number(text[1:]) for text in rest[len(fields) :]}
            if None in options or None in options.values():
                return b"ERR unknown option\r\n"
            # on the console the watchdog is off
            command: dict[str, float] = NOTHING | {"mode": int(mode), "timeout": math.nan} | given | options  # type: ignore
            if word == "pwm":  # the console has rad and rad/s, the registers half turns
                command["theta"], command["theta_rate"] = command["theta"] / math.pi, command["theta_rate"] / math.pi
            if word == "ind" and not 1.0 <= command["period"] < 128.0:
                return b"ERR period must be in 1..127\r\n"
            servo.sweep = None  # another command ends it
            servo.apply(command, t_ns)
        case _:
            return b"ERR unknown command\r\n"
    return OK


def _sweep(servo: Servo, kind: str, words: list[str]) -> bytes:
    """`d cal` and `d cali`; their answer is the first line of the sweep."""
    magnitude = 0.0
    if kind == "cal":
        if not words:
            return b"ERR missing mag\r\n"
        magnitude, *words = _number(words[0]), *words[1:]
    options = {text[0]: _number(text[1:]) for text in words}
    if not options.keys() <= set("s" if kind == "cal" else "si") or not all(map(_is_finite, options.values())):
        return f"ERR unknown {kind} option\r\n".encode()
    if not _is_finite(magnitude):
        return b"ERR malformed mag\r\n"
    if servo.encoder_lost:
        return b"ERR encoder configuration error\r\n"
    sweep = Sweep(kind == "cali", options.get("i", magnitude), options.get("s", 1.0))  # type: ignore
    servo.sweep = partial(sweep.step, servo)
    return b"CALI start 1\r\n" if kind == "cali" else b"CAL start 2\r\n"


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_GROUPS: dict[str, Callable[[Servo, list[str], int], bytes]] = {"conf": _conf, "tel": _tel, "d": _d}
