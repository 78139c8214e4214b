"""The state of one emulated drive, as its manual names it."""

from __future__ import annotations

from cosim.drivers.common.motor import Motor
from cosim.drivers.moteus.device.commands import NOTHING
from cosim.drivers.moteus.device.config import factory
from cosim.drivers.moteus.registers import TORQUE_FACTOR, Mode
from cosim.units import TURN


class ServoState:
    """Positions are turns, velocities turns/s, as in the manual."""

    def __init__(self, node: int, motor: Motor) -> None:
        """node: the id it comes with, from which its serial number and its UUID follow."""
        self.motor = motor
        self.serial = (0x3437_0000 | node, 0x5050_5050, 0x2033_3632)
        self.uuid = bytes.fromhex("6d6f7465757300008000000000000000")[:15] + bytes((node,))
        self.saved = factory(node, self.uuid, motor)
        self.reset(0)

    def reset(self, t_ns: int) -> None:
        """Power comes back: stopped, configured as it was written last, the position as the output's encoder has it."""
        self.config: dict[str, int | float] = dict(self.saved)
        self.t_ns = self.since_ns = self.phase_ns = t_ns
        self.mode, self.fault = int(Mode.STOPPED), 0
        self.written, self.command = dict(NOTHING), dict(NOTHING)  # as it came, and as it is obeyed
        self.fresh = False  # whether the frame that is read brought a mode
        self.expires_ns: int | None = None  # when the watchdog trips, where it runs
        self.offset, self.home = 0.0, 2  # position = position of the encoder + offset
        self.target: float | None = None  # of the encoder, as are the control positions
        self.control_position: float | None = None
        self.control_velocity = self.integral = self.proportional = self.derivative = self.asked = 0.0
        self.arrived = False
        self.kept: dict[int, float] = {}  # registers that only keep what is written
        self.inbox = self.outbox = b""  # of the diagnostic channel
        self.packet, self.held = 0, 0  # its number and the bytes of it that wait to be acknowledged
        self.text: frozenset[str] = frozenset()  # telemetry that is sent as text
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
        """-1 below, 1 above, 0 within bounds of the position, of which either may be not a number."""
        position = self.encoder + self.offset
        return (position > upper) - (position < lower)
