"""The device side of the Mini Cheetah protocol, as AK and Damiao drives speak it."""

from __future__ import annotations

import math

from cosim.drivers.common.emulated_drive import WATCHDOG, CountingDrive, EmulatedDrives
from cosim.drivers.common.motor import Motor
from cosim.drivers.mit import codec
from cosim.drivers.mit.params import JointParams
from cosim.drivers.transport import CanFrame

# a Damiao drive has no code for its encoder, a Mini Cheetah none for its watchdog
DAMIAO_CODES = {"overtemperature": 12, "overcurrent": 10, "undervoltage": 9, "encoder": 14, WATCHDOG: 13}
CODES = {"overtemperature": 1, "overcurrent": 2, "undervoltage": 4, "encoder": 5, WATCHDOG: 0, "": 0}

NEVER_NS = 1 << 62


class MitDrive(CountingDrive):
    """watchdog [s]: of a drive whose own cannot be set over the bus."""

    def __init__(self, motor: Motor, own: JointParams, watchdog: float) -> None:
        self.own, self.watchdog = own, watchdog
        super().__init__(motor)

    def reset(self) -> None:
        ranges = zip(codec.LIMITS, self.own.ranges[:3], strict=True)
        self.registers: dict[int, float] = {codec.CONTROL_MODE: 2, codec.TIMEOUT: 0, **dict(ranges)}
        self.targets = (0.0,) * 5
        super().reset()

    def requested_effort(self, limit: float) -> float:
        position, velocity, kp, kd, effort = self.targets
        motor = self.motor
        return kp * (position - motor.position) + kd * (velocity - motor.velocity) + effort

    def follow(self, targets: tuple[float, ...], t_ns: int) -> None:
        """A command."""
        timeout = self.registers[codec.TIMEOUT] * codec.TIMEOUT_UNIT if self.own.damiao else self.watchdog
        self.targets = targets
        self.command("effort", 0.0, math.inf, round(1e9 * timeout) or NEVER_NS, t_ns)

    def state(self) -> CanFrame:
        own, motor = self.own, self.motor
        degrees = min(max(round(motor.temperature), 0), 215)
        code = DAMIAO_CODES.get(self.fault, int(self.mode != "")) if own.damiao else CODES[self.fault]
        head, tail = (code << 4 | own.id & 0xF, (degrees, degrees)) if own.damiao else (own.id, (degrees + 40, code))
        state = codec.DriveState(self.encoder.position(), self.encoder.velocity(), motor.effort, 0.0, 0)
        return codec.state(own.master, head, own.ranges, state, bytes(tail))


class Emulator(EmulatedDrives[MitDrive]):
    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """A frame from the bus, of any content; the answers."""
        if item.id == codec.REGISTERS:
            return self._register(item)
        drive = self.drives.get(item.id)
        if drive is None or len(item.data) != 8 or item.extended or item.remote:
            return []
        match item.data[7] if item.data[:7] == b"\xff" * 7 else 0:
            case codec.ENTER:
                self._forgive(drive)
                drive.enable(t_ns)
            case codec.EXIT:
                drive.switch_off()
                self._forgive(drive)
            case codec.CLEAR if drive.own.damiao:
                drive.clear()
            case _ if drive.mode:
                drive.follow(codec.decode_command(item, drive.own.ranges), t_ns)
            case _ if not drive.own.damiao and drive.fault in ("", WATCHDOG):
                return []  # out of motor mode it is silent
        return [drive.state()]

    def _forgive(self, drive: MitDrive) -> None:
        """A Mini Cheetah keeps no fault whose cause is gone."""
        if not drive.own.damiao:
            drive.clear()

    def _register(self, item: CanFrame) -> list[CanFrame]:
        request = codec.decode_register(item)
        drive = self.drives.get(request[0]) if request else None
        if request is None or drive is None or not drive.own.damiao:
            return []
        id, what, number, value = request
        if what == codec.REFRESH:
            return [drive.state()]
        if number not in drive.registers:
            return []
        if what == codec.WRITE and number not in codec.LIMITS:
            drive.registers[number] = value
        return [codec.register(drive.own.master, id, what, number, drive.registers[number])]
