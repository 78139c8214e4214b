"""The state of one emulated drive, with the names of its manual."""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Callable

from cosim.core.units import TURN
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.common.unknown_requests import UnknownRequests
from cosim.plugins.drivers.common.windings import Windings
from cosim.plugins.drivers.moteus.device.commands import NOTHING
from cosim.plugins.drivers.moteus.device.config import OFFSETS, factory
from cosim.plugins.drivers.moteus.registers import TORQUE_FACTOR, Mode

NOISE = 0.05  # A, standard deviation of the sampled currents of windings


class InductanceTest:
    """State of the mode that measures the inductance."""

    def __init__(self) -> None:
        self.phase = 0  # cycles until the excitation changes its sign, with its sign
        self.sum = 0.0  # A
        self.before: float | None = None  # A, in the last cycle
        self.rest = 0.0  # cycles not yet executed


class ServoState:
    """Positions are turns, velocities turns/s, as in the manual."""

    def __init__(self, node: int, motor: Motor) -> None:
        """node: the initial id, which also determines the serial number and the UUID."""
        self.motor, self.unknown = motor, UnknownRequests()
        self.serial = (0x3437_0000 | node, 0x5050_5050, 0x2033_3632)
        self.uuid = bytes.fromhex("6d6f7465757300008000000000000000")[:15] + bytes((node,))
        self.saved = factory(node, self.uuid, motor)
        self.windings = Windings(motor) if motor.resistance and motor.inductance else None
        self._noise = random.Random(node)
        self.reset(0)

    def reset(self, t_ns: int) -> None:
        """Power-on: stopped, with the saved configuration and the position of the output encoder."""
        self.config: dict[str, int | float] = dict(self.saved)
        self.t_ns = self.power_on_ns = self.phase_ns = t_ns
        self.mode, self.fault = int(Mode.STOPPED), 0
        self.written, self.command = dict(NOTHING), dict(NOTHING)  # as received, and as applied
        self.mode_written = False  # the present frame writes the mode
        self.expires_ns: int | None = None  # time at which the watchdog trips, None if it is off
        self.offset, self.home = self.config["motor_position.output.offset"], 2  # position = encoder + offset
        self.target: float | None = None  # encoder position, as are the control positions
        self.control_position: float | None = None
        self.control_velocity = self.integral = self.proportional = self.derivative = self.requested = 0.0
        self.arrived = False
        self.sweep: Callable[[int], bytes] | None = None  # a step of `d cal` at a time [ns]: text for the host
        self.inductance = InductanceTest()
        if self.windings:
            self.windings.open()
        self.stored: dict[int, float] = {}  # registers that only store a value
        self.inbox: bytes = b""  # of the diagnostic channel
        self.outbox: bytes = b""
        self.packet, self.unacknowledged = 0, 0  # number of the last packet, and its bytes that are not acknowledged
        self.text: frozenset[str] = frozenset()  # telemetry channels sent as text
        self.rates: dict[str, tuple[int, int]] = {}  # those sent unrequested: period and time of the next record [ns]
        self.motor.request(0.0)

    # --- measured values ---------------------------------------------------------------------

    @property
    def encoder(self) -> float:
        return self.motor.position / TURN

    @property
    def velocity(self) -> float:
        return self.motor.velocity / TURN

    @property
    def encoder_lost(self) -> bool:
        return math.isnan(self.motor.position)

    @property
    def torque_constant(self) -> float:
        return TORQUE_FACTOR / self.config["motor.Kv"] if self.config["motor.Kv"] else 0.1

    @property
    def turns_field(self) -> bool:
        """Whether the field follows the control position instead of the rotor."""
        fixed = (self.command["fixed_voltage"], self.command["fixed_current"])
        return self.mode in (Mode.POSITION, Mode.MEASURE_INDUCTANCE) and not all(math.isnan(each) for each in fixed)

    @property
    def theta(self) -> float:
        """Electrical angle [rad] of the frame of the direct and quadrature currents."""
        if self.turns_field and self.control_position is not None:
            return math.pi * self.config["motor.poles"] * self.control_position
        turn = self.encoder % 1.0
        at, part = divmod(turn * OFFSETS, 1.0)
        first, second = (self.config[f"motor.offset.{int(at + k) % OFFSETS}"] for k in (0, 1))
        return math.pi * self.config["motor.poles"] * turn + first + part * (second - first)

    def sampled_current(self) -> complex:
        """Space vector of the phase currents [A] in the frame of the stator, as the drive's converters give it."""
        if not (self.windings and self.windings.current):
            return self.motor.current * 1j * cmath.exp(1j * self.theta) if math.isfinite(self.theta) else 0j
        return self.windings.current + complex(self._noise.gauss(0.0, NOISE), self._noise.gauss(0.0, NOISE))

    def dq_current(self) -> complex:
        """Direct and quadrature current [A], as real and imaginary part."""
        if not (self.windings and self.windings.current):
            return complex(0.0, self.motor.current)
        return self.sampled_current() * cmath.exp(-1j * self.theta)

    def beyond(self, lower: float, upper: float) -> int:
        """-1 below, 1 above, 0 within these position limits, which may be NaN."""
        position = self.encoder + self.offset
        return (position > upper) - (position < lower)
