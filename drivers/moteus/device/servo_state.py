"""The state of one emulated drive, with the names of its manual."""

from __future__ import annotations

from cosim.drivers.common.motor import Motor
from cosim.drivers.moteus.device.commands import NOTHING
from cosim.drivers.moteus.device.config import factory
from cosim.drivers.moteus.registers import TORQUE_FACTOR, Mode
from cosim.units import TURN


class ServoState:
    """Positions are turns, velocities turns/s, as in the manual."""

    def __init__(self, node: int, motor: Motor) -> None:
        """node: the initial id, which also determines the serial number and the UUID."""
        self.motor = motor
        self.serial = (0x3437_0000 | node, 0x5050_5050, 0x2033_3632)
        self.uuid = bytes.fromhex("6d6f7465757300008000000000000000")[:15] + bytes((node,))
        self.saved = factory(node, self.uuid, motor)
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
        self.stored: dict[int, float] = {}  # registers that only store a value
        self.inbox = self.outbox = b""  # of the diagnostic channel
        self.packet, self.unacknowledged = 0, 0  # number of the last packet, and its bytes that are not acknowledged
        self.text: frozenset[str] = frozenset()  # telemetry channels sent as text
        self.motor.request(0.0)

    # --- measured values ---------------------------------------------------------------------

    @property
    def encoder(self) -> float:
        return self.motor.position / TURN

    @property
    def velocity(self) -> float:
        return self.motor.velocity / TURN

    @property
    def torque_constant(self) -> float:
        return TORQUE_FACTOR / self.config["motor.Kv"] if self.config["motor.Kv"] else 0.1

    def beyond(self, lower: float, upper: float) -> int:
        """-1 below, 1 above, 0 within these position limits, which may be NaN."""
        position = self.encoder + self.offset
        return (position > upper) - (position < lower)
