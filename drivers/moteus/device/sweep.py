"""The sweeps of `d cal` and `d cali`: the field turns until the encoder has turned once, and back; lines report both.

After the firmware's board_debug.cc. A line is: direction, phase and encoder in 1/65536 turn, phase currents in mA.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cosim.plugins.drivers.moteus.device.commands import NOTHING
from cosim.plugins.drivers.moteus.device.field import phases
from cosim.plugins.drivers.moteus.device.servo import Servo
from cosim.plugins.drivers.moteus.registers import Mode

_TURN = 65536
_EVERY_NS = 990_000  # 1 ms, in steps that may be shorter
_LINE_EVERY = 10  # ms
_MOST_POLES = 50.0


@dataclass
class Sweep:
    """One sweep; magnitude: voltage [V] or current [A] of the field, speed: electrical turns/s."""

    by_current: bool
    magnitude: float
    speed: float
    upward: bool = True
    count: int = 0  # ms
    phase: int = 0  # of the field
    turned: int = 0  # by the encoder, in this direction
    encoder: int | None = None
    due_ns: int = 0

    @property
    def name(self) -> str:
        return "CALI" if self.by_current else "CAL"

    def step(self, servo: Servo, t_ns: int) -> bytes:
        """One ms, when it is due; the text for the host. The sweep is over when `servo.sweep` is None."""
        if t_ns < self.due_ns:
            return b""
        self.due_ns = t_ns + _EVERY_NS
        if servo.mode in (Mode.FAULT, Mode.TIMEOUT):
            return self._end(servo, t_ns, "CAL fault")
        if servo.encoder_lost:  # which is a fault in the next step
            return b""
        encoder = int(servo.encoder % 1.0 * _TURN) % _TURN
        if self.encoder is not None:
            self.turned += (encoder - self.encoder + _TURN // 2) % _TURN - _TURN // 2
        self.encoder = encoder
        self.count += 1
        if self.count * abs(self.speed) > 2.0 * 2.0 * 1000.0 * _MOST_POLES:
            return self._end(servo, t_ns, "CAL timeout")
        if abs(self.turned) > _TURN:
            if not self.upward:
                return self._end(servo, t_ns, f"{self.name} done")
            self.upward, self.turned = False, 0
        line = b"" if self.count % _LINE_EVERY or servo.outbox else self._line(servo)
        self._turn(servo, t_ns)
        return line

    def _line(self, servo: Servo) -> bytes:
        theta = int(servo.theta / math.tau * _TURN) % _TURN if self.by_current else self.phase
        currents = " ".join(
            f"i{k}={int(current * 1000)}" for k, current in enumerate(phases(servo.sampled_current()), start=1)
        )
        direction = (1 if self.upward else 2) + 2 * self.by_current
        return f"{direction} {theta} {self.encoder} {currents} d={self.turned}\r\n".encode()

    def _turn(self, servo: Servo, t_ns: int) -> None:
        sign = 1 if self.upward else -1
        if self.by_current:
            fields = {
                "mode": Mode.POSITION,
                "position": math.nan,
                "velocity": sign * self.speed,
                "fixed_current": self.magnitude,
                "ignore_bounds": 1.0,
                "timeout": math.nan,
            }
        else:
            self.phase = (self.phase + sign * int(self.speed * _TURN / 1000.0)) % _TURN
            fields = {"mode": Mode.VOLTAGE_FOC, "theta": 2.0 * self.phase / _TURN, "voltage": self.magnitude}
        servo.apply(NOTHING | fields, t_ns)

    def _end(self, servo: Servo, t_ns: int, what: str) -> bytes:
        servo.sweep = None
        if servo.mode != Mode.FAULT:  # a fault stays to be seen; its motor is off
            servo.apply(NOTHING | {"mode": Mode.STOPPED}, t_ns)
        return f"{what}\r\n".encode()
