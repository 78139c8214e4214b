"""The state of one emulated drive: plain attributes, changed by the functions of this package only."""

from __future__ import annotations

from cosim.drivers.cia402 import codec, profile
from cosim.drivers.cia402.device import objects
from cosim.drivers.common.motor import Motor
from cosim.drivers.transport import CanFrame
from cosim.units import RPM, TURN

TEMPERATURE = 0x320101  # of the power stage
RATED_SHARE = 1 / 3  # of its greatest torque that a servo motor may give for ever
BANDWIDTH = 5.0  # of the velocity loop, as a multiple of greatest torque per greatest speed


MOST_EFFORT, MOST_VELOCITY = 1e5, 1e5  # N·m and rad/s that the objects show of a motor without limits


def _whole(value: float, most: int = 0xFFFFFFFF) -> int:
    """The nearest number ≥ 1 that fits into an object."""
    return max(1, round(min(value, float(most))))


class Node:
    """id 1…127; counts: encoder increments per turn; rated: torque [N·m] behind 6076h; temperature: a further key under
    which its object is found; identity: (vendor, product).

    Positions are counts, speeds counts/s, torques N·m, times ns unless said otherwise.
    """

    def __init__(
        self,
        node: int,
        motor: Motor,
        counts: int,
        rated: float | None,
        identity: tuple[int, int],
        temperature: int | None,
    ) -> None:
        self.id, self.motor, self.counts, self.identity = node, motor, counts, identity
        own = max(1, round(1e3 * RATED_SHARE * min(motor.max_effort, MOST_EFFORT)))
        self.rated = own if rated is None else 1e3 * rated  # mN·m
        self.temperature = TEMPERATURE if temperature is None else temperature
        self.step = TURN / counts  # rad per count
        self.restart(0)

    def restart(self, t_ns: int) -> None:
        """As after switching on: motor off, everything as stored in the drive."""
        self.t_ns = self.stepped_ns = t_ns  # of what came last, of the last step of the control loops
        # objects
        self.values = objects.start_values(self.id) | self._of_motor()
        # network
        self.nmt = codec.BOOTING
        self.beat_due: int | None = None  # when to send the next heartbeat
        self.heard: list[int | None] = [None, None]  # when each watched heartbeat came last
        self.outbox: list[CanFrame] = []
        # process data
        self.inward: dict[int, tuple[int, int, tuple[int, ...]]] = {}  # COB-ID -> (number, type, keys)
        self.outward: tuple[tuple[int, int, int, tuple[int, ...], bool], ...] = ()  # number, COB-ID, type, keys, remote
        self.pending: list[bytes | None] = [None] * len(objects.PDOS)
        self.syncs = [0] * len(objects.PDOS)
        self.sent: list[bytes | None] = [None] * len(objects.PDOS)
        self.sent_ns = [0] * len(objects.PDOS)
        # SDO server: the transfer under way
        self.transfer = ""  # "", "up" or "down"
        self.transfer_key = self.transfer_size = self.transfer_toggle = 0
        self.transfer_data = b""
        # power drive system
        self.state = profile.DISABLED
        self.control = 0
        self.mode = 0
        self.errors: list[int] = []  # error codes that stand
        # motion
        self.zero = 0.0  # counts of the motor where the drive shows position 0
        self.demand = self.goal = self.begin = self.actual()
        self.begun = t_ns
        self.rate = self.integral = self.asked = 0.0
        self.before = (0.0, 0.0, 0.0)  # torque asked and speed one step ago, and what the speed changed by then
        self.response = (0.0, 0.0)  # sums over steps: change of torque · that of acceleration, the former's square
        self.braking = 0.0  # s since braking began
        self.late = 0.0  # s since the following error left its window
        self.homing = False
        self.bits = 0  # of the statusword that belong to the mode
        self.limited = False
        self.motor.request(0.0)

    def _of_motor(self) -> dict[int, int]:
        effort, velocity = min(self.motor.max_effort, MOST_EFFORT), min(self.motor.max_velocity, MOST_VELOCITY)
        peak = velocity / self.step  # counts/s
        return {
            0x101801: self.identity[0],
            0x101802: self.identity[1],
            0x606500: self.counts,
            0x606700: max(1, self.counts // 1000),
            0x606D00: _whole(0.01 * peak, 0xFFFF),
            0x607200: _whole(1e6 * effort / self.rated, 0xFFFF),
            0x607600: _whole(self.rated),
            0x608000: _whole(-(-velocity // RPM)),
            0x608100: _whole(0.5 * peak),
            **dict.fromkeys((0x608300, 0x608400, 0x609A00), _whole(2.0 * peak)),
            0x608500: _whole(10.0 * peak),
            0x608F01: self.counts,
            0x609901: _whole(0.1 * peak),
            0x609902: _whole(0.02 * peak),
            0x60F901: _whole(1e6 * BANDWIDTH * effort / velocity),
        }

    def value(self, key: int) -> int:
        """Of an object that is a number and stored."""
        value = self.values[key]
        assert isinstance(value, int)
        return value

    def known(self, key: int) -> int:
        """The key in the table of an object that drives of several makers have in different places."""
        return TEMPERATURE if key == self.temperature else key

    def actual(self) -> float:
        """The measured position."""
        return self.motor.position / self.step - self.zero

    def speed(self) -> float:
        """The measured velocity."""
        return self.motor.velocity / self.step

    def torque(self, per_mille: float) -> float:
        """Of a number in thousandths of the rated torque."""
        return per_mille * self.rated * 1e-6

    def send(self, frame: CanFrame) -> None:
        self.outbox.append(frame)
