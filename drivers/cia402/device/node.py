"""The state of one emulated drive: plain attributes, changed by the functions of this package only."""

from __future__ import annotations

from fractions import Fraction

from cosim.core.units import RPM, TURN
from cosim.plugins.drivers.cia402 import codec, profile
from cosim.plugins.drivers.cia402.device import objects
from cosim.plugins.drivers.cia402.factor_group import POSITION_REVERSED, VELOCITY_REVERSED, unit_code, velocity_unit_of
from cosim.plugins.drivers.cia402.params import EmulatedParams
from cosim.plugins.drivers.common.motor import Motor, WholeNumberEncoder
from cosim.plugins.drivers.transport import CanFrame

TEMPERATURE = 0x320101  # of the power stage
RATED_FRACTION = 1 / 3  # of the peak torque of a servo motor: its continuous torque
BANDWIDTH = 5.0  # gain of the velocity loop, as a multiple of peak torque / peak speed
MAX_EFFORT, MAX_VELOCITY = 1e5, 1e5  # N·m and rad/s, in the objects of a motor without limits


def _object_value(value: float, maximum: int = 0xFFFFFFFF) -> int:
    """The nearest whole number from 1 to the maximum of an object."""
    return max(1, round(min(value, float(maximum))))


class Node:
    """id 1…127; cpr: position units per revolution of the shaft, unless the settings have a feed constant; rated:
    torque [N·m] of 6076h; temperature: a second key of its object; identity: (vendor, product).

    Units: position units (counts), counts/s, N·m, ns, if not stated otherwise; the motor is the shaft, behind the gear
    6091h. Speeds and accelerations in objects are in the unit of its settings: `rate_of`.
    """

    def __init__(
        self,
        node: int,
        motor: Motor,
        cpr: int,
        rated: float | None,
        identity: tuple[int, int],
        temperature: int | None,
        settings: EmulatedParams,
    ) -> None:
        self.id, self.motor, self.identity, self.settings = node, motor, identity, settings
        self.cpr = settings.feed_constant or cpr
        self.encoder = WholeNumberEncoder(motor)
        default = max(1, round(1e3 * RATED_FRACTION * min(motor.max_effort, MAX_EFFORT) / settings.gear_ratio))
        self.rated = settings.gear_ratio * (default if rated is None else 1e3 * rated)  # mN·m at the shaft
        self.temperature = TEMPERATURE if temperature is None else temperature
        self.step = TURN / self.cpr  # rad per count
        self.rate_unit = velocity_unit_of(settings.velocity_unit).step(self.step) / self.step  # counts/s of one unit
        self.sense = -1.0 if settings.reversed else 1.0  # of positions and velocities against the motor
        self.restart(0)

    def restart(self, t_ns: int) -> None:
        """Power-on: motor off, all objects as stored in the drive."""
        self.t_ns = self.stepped_ns = t_ns  # of the last frame or step, of the last step of the control loops
        # objects
        self.values = objects.start_values(self.id) | self._of_motor()
        # network
        self.nmt = codec.BOOTING
        self.beat_due: int | None = None  # when to send the next heartbeat
        self.heard: list[int | None] = [None, None]  # time of the last heartbeat of each monitored node
        self.guard_toggle = 0  # bit of the next answer to node guarding: 0 or 80h
        self.outbox: list[CanFrame] = []
        # process data
        self.receive_pdos: dict[int, tuple[int, int, tuple[int, ...]]] = {}  # COB-ID -> (number, type, keys)
        self.transmit_pdos: tuple[
            tuple[int, int, int, tuple[int, ...], bool], ...
        ] = ()  # number, COB-ID, type, keys, remote
        self.pending: list[bytes | None] = [None] * len(objects.PDOS)
        self.syncs = [0] * len(objects.PDOS)
        self.sent: list[bytes | None] = [None] * len(objects.PDOS)
        self.sent_ns = [0] * len(objects.PDOS)
        # SDO server: the present transfer
        self.transfer = ""  # "", "up" or "down"
        self.transfer_key = self.transfer_size = self.transfer_toggle = 0
        self.transfer_data = b""
        # power drive system
        self.state = profile.DISABLED
        self.control = 0
        self.mode = 0
        self.errors: list[int] = []  # active error codes
        # motion
        self.zero = 0.0  # counts of the motor at position 0 of the drive
        self.demand = self.goal = self.start = self.actual()
        self.target_ns = t_ns
        self.rate = self.integral = self.requested = 0.0
        self.last_step = (0.0, 0.0, 0.0)  # torque and speed [rad/s] of the last step, and the change of the speed in it
        self.response = (0.0, 0.0)  # sums over steps: change of torque · change of acceleration, square of the former
        self.braking = 0.0  # s since braking began
        self.window_time = 0.0  # s since the following error left its window
        self.homing = False
        self.bits = 0  # mode-specific ones of the statusword
        self.limited = False
        self.motor.request(0.0)

    def _of_motor(self) -> dict[int, int]:
        effort, velocity = min(self.motor.max_effort, MAX_EFFORT), min(self.motor.max_velocity, MAX_VELOCITY)
        peak = velocity / self.step / self.rate_unit  # in the unit of speeds
        return {
            0x101801: self.identity[0],
            0x101802: self.identity[1],
            0x606500: self.cpr,
            0x606700: max(1, self.cpr // 1000),
            0x606D00: _object_value(0.01 * peak, 0xFFFF),
            0x607200: _object_value(1e6 * effort / self.rated, 0xFFFF),
            0x608000: _object_value(-(-velocity * self.settings.gear_ratio // RPM)),
            0x608100: _object_value(0.5 * peak),
            **dict.fromkeys((0x608300, 0x608400, 0x609A00), _object_value(2.0 * peak)),
            0x608500: _object_value(10.0 * peak),
            **self._factor_group(),
            **(objects.FIXED_MAPS if self.settings.fixed_maps else {}),
            0x609901: _object_value(0.1 * peak),
            0x609902: _object_value(0.02 * peak),
            0x60F901: _object_value(1e6 * BANDWIDTH * effort / velocity),
        }

    def _factor_group(self) -> dict[int, int]:
        settings = self.settings
        gear = Fraction(settings.gear_ratio).limit_denominator(10_000)
        factor = Fraction(1.0 / self.rate_unit).limit_denominator(1_000_000)
        rated = self.rated / settings.gear_ratio
        return {
            0x607500: _object_value(rated / self.motor.torque_constant * settings.gear_ratio),
            0x607600: _object_value(rated * (1e3 if settings.torque_unit == "uN*m" else 1.0)),
            0x607E00: POSITION_REVERSED | VELOCITY_REVERSED if settings.reversed else 0,
            0x608F01: settings.encoder_resolution or _object_value(self.cpr / settings.gear_ratio),
            0x609001: settings.encoder_resolution or _object_value(self.cpr / settings.gear_ratio),
            0x609101: gear.numerator,
            0x609102: gear.denominator,
            0x609201: self.cpr,
            **({0x609601: factor.numerator, 0x609602: factor.denominator} if settings.report == "factor" else {}),
            0x60A900: unit_code(settings.velocity_unit) if settings.report == "code" else 0,
        }

    def value(self, key: int) -> int:
        """The value of a stored object that is a number."""
        value = self.values[key]
        assert isinstance(value, int)
        return value

    def table_key(self, key: int) -> int:
        """The key in the object table; the temperature has a second one, because its key is manufacturer-specific."""
        return TEMPERATURE if key == self.temperature else key

    def rate_of(self, key: int) -> float:
        """The value of an object with a speed [counts/s] or an acceleration [counts/s²]."""
        return self.value(key) * self.rate_unit

    def actual(self) -> float:
        """The measured position."""
        return self.sense * self.encoder.position() / self.step - self.zero

    def speed(self) -> float:
        """The measured velocity."""
        return self.sense * self.encoder.velocity() / self.step

    def torque(self, per_mille: float) -> float:
        """The torque [N·m] of a number in thousandths of the rated torque."""
        return per_mille * self.rated * 1e-6

    def send(self, frame: CanFrame) -> None:
        self.outbox.append(frame)
