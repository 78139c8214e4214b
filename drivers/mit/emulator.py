"""The device side of the Mini Cheetah protocol, as AK and Damiao drives speak it."""

from __future__ import annotations

import math
import struct

from cosim.plugins.drivers.common.emulated_drive import WATCHDOG, CountingDrive, EmulatedDrives
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.mit import codec
from cosim.plugins.drivers.mit.params import JointParams
from cosim.plugins.drivers.mit.registers import SETTINGS, stored_by
from cosim.plugins.drivers.transport import CanFrame

# a Damiao drive has no code for its encoder, a Mini Cheetah none for its watchdog
DAMIAO_CODES = {"overtemperature": 12, "overcurrent": 10, "undervoltage": 9, "encoder": 14, WATCHDOG: 13}
CODES = {"overtemperature": 1, "overcurrent": 2, "undervoltage": 4, "encoder": 5, WATCHDOG: 0, "": 0}

NEVER_NS = 1 << 62
DELIVERED = {  # of a DM4310; the ranges come from the rig
    "UV_Value": 15.0,
    "KT_Value": 0.945,
    "OT_Value": 100.0,
    "OC_Value": 0.98,
    "ACC": 10.0,
    "DEC": -10.0,
    "MAX_SPD": 30.0,
    "I_BW": 1000.0,
    "KP_ASR": 3.72e-4,
    "KI_ASR": 2e-3,
    "KP_APR": 54.0,
    "KI_APR": 0.0,
    "OV_Value": 32.0,
    "GREF": 1.0,
    "Deta": 4.0,
    "V_BW": 50.0,
    "IQ_c1": 1000.0,
    "VL_c1": 1000.0,
}


def _stored(value: float) -> float:
    """As a register holds it."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


class MitDrive(CountingDrive):
    """watchdog [s]: of a drive whose own cannot be set over the bus."""

    def __init__(self, motor: Motor, own: JointParams, watchdog: float) -> None:
        self.own, self.watchdog = own, watchdog
        ranges = zip(codec.LIMITS, own.ranges[:3], strict=True)
        delivered = {SETTINGS[name]: _stored(value) for name, value in DELIVERED.items()}
        # registers that it keeps without power
        self.kept: dict[int, float] = {codec.CONTROL_MODE: 2, codec.TIMEOUT: 0, **dict(ranges), **delivered}
        super().__init__(motor)

    def reset(self) -> None:
        self.registers = dict(self.kept)
        self.targets = (0.0,) * 5
        super().reset()

    @property
    def ranges(self) -> codec.Ranges:
        position, velocity, effort = (self.registers[number] for number in codec.LIMITS)
        return self.own.ranges._replace(position=position, velocity=velocity, effort=effort)

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
        return codec.state(own.master, head, self.ranges, state, bytes(tail))


class Emulator(EmulatedDrives[MitDrive]):
    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """A frame from the bus, of any content; the answers."""
        if item.id == codec.REGISTERS:
            return self._register(item)
        drive = self.drives.get(item.id)
        if drive is None or item.extended or item.remote:
            return []
        if len(item.data) != 8:
            self.unknown.note(f"node {item.id}: a frame of {len(item.data)} bytes")
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
                drive.follow(codec.decode_command(item, drive.ranges), t_ns)
            case _ if not drive.own.damiao and drive.fault in ("", WATCHDOG):
                return []  # out of motor mode it is silent
        return [drive.state()]

    def _forgive(self, drive: MitDrive) -> None:
        """A Mini Cheetah keeps no fault whose cause is gone."""
        if not drive.own.damiao:
            drive.clear()

    def _register(self, item: CanFrame) -> list[CanFrame]:
        request = codec.decode_register(item)
        keeper = self.drives.get(id) if (id := stored_by(item)) is not None else None
        if keeper is not None and keeper.own.damiao and not keeper.mode:
            keeper.kept = dict(keeper.registers)
        drive = self.drives.get(request[0]) if request else None
        if request is None or drive is None or not drive.own.damiao:
            return []
        id, what, number, value = request
        if what == codec.REFRESH:
            return [drive.state()]
        if number not in drive.registers:
            self.unknown.note(f"node {id}: register {number}")
            return []
        if what == codec.WRITE and not (number in codec.LIMITS and not value > 0):
            drive.registers[number] = value
        return [codec.register(drive.own.master, id, what, number, drive.registers[number])]
