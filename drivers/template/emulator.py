"""The device side of the template protocol."""

from __future__ import annotations

from cosim.plugins.drivers.common.emulated_drive import EmulatedDrive, EmulatedDrives
from cosim.plugins.drivers.common.fault_texts import code_of
from cosim.plugins.drivers.template import codec
from cosim.plugins.drivers.transport import CanFrame


class Emulator(EmulatedDrives[EmulatedDrive]):
    version = codec.VERSION

    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """A frame from the bus, of any content; the answers."""
        node, message = item.id & 0x7F, codec.decode(item)
        drive = self.drives.get(node)
        if drive is None:
            return []
        if message is None:
            self.unknown.note(f"node {node}: a frame {item.id:#x} of {len(item.data)} bytes")
            return []
        motor = drive.motor
        match message:
            case codec.COMMAND, (0, *_):
                drive.switch_off()
            case codec.COMMAND, (mode, watchdog, limit, target):
                if mode < len(codec.MODES):
                    drive.command(codec.MODES[mode], target, 1e-3 * limit, 10_000_000 * watchdog, t_ns)
            case codec.REQUEST, (codec.WHO,):
                fastest = min(round(10 * motor.max_velocity), 0xFFFF)
                return [codec.encode(codec.IDENTITY, node, self.version, fastest, motor.max_effort)]
            case codec.REQUEST, (codec.CLEAR,):
                drive.clear()
            case codec.REQUEST, (codec.ENABLE,):
                drive.enable(t_ns)
            case codec.MOTION | codec.STATUS | codec.IDENTITY, _:
                return []
        temperature = min(max(round(10 * motor.temperature), -0x8000), 0x7FFF)
        state = (motor.effort, temperature, codec.MODES.index(drive.mode), code_of(drive.fault, codec.FAULTS))
        motion = codec.encode(codec.MOTION, node, motor.position, motor.velocity)
        return [motion, codec.encode(codec.STATUS, node, *state)]
