"""The parameters of Modbus drives and of their joints in a rig: the serial link, and the map of a drive's registers."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

from cosim.core.types import param, params
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.common.fault_texts import check_fault_texts
from cosim.plugins.drivers.modbus import codec
from cosim.plugins.drivers.transport import UartParams


@params
class Params:
    """The serial link, and what all drives on it have in common."""

    port: UartParams = param()
    watchdog: float = param(unit="s", min=0.01, default=0.1, doc="without messages a drive stops after this")
    response_time: float = param(unit="s", min=0, max=1, default=4e-3, doc="until a drive begins its answer, at most")
    pause: float | None = param(unit="s", min=0, max=1, default=None, doc="between two frames; default: 3.5 characters")


@params
class MapEntry:
    """A register, with its address in the protocol: 0 for the first one."""

    register: int = param(min=0, max=0xFFFF)

    @property
    def span(self) -> range:
        return range(self.register, self.register + 1)


@params
class RegisterPoint(MapEntry):
    """A number in one register, or in two from `register` on."""

    type: Literal["int16", "uint16", "int32", "uint32", "float32"] = param(default="int16")
    word_order: Literal["big", "little"] = param(default="big", doc="of two registers; big: the high word is first")
    scale: float = param(above=0, default=1.0, doc="per count")

    @property
    def span(self) -> range:
        return range(self.register, self.register + (2 if "32" in self.type else 1))

    def words(self, value: float) -> tuple[int, ...]:
        """The registers of an SI value, clipped to what they can hold."""
        return codec.to_words(value / self.scale, self.type, self.word_order == "little")

    def value(self, memory: dict[int, int]) -> float:
        """The SI value in a memory."""
        words = [memory[register] for register in self.span]
        return self.scale * codec.from_words(words, self.type, self.word_order == "little")

    @property
    def resolution(self) -> float:
        """One count in SI; 0 for floats."""
        return 0.0 if self.type == "float32" else self.scale

    @property
    def largest(self) -> float:
        """The largest SI value, of either sign."""
        _, low, high = codec.TYPES[self.type]
        return self.scale * min(high, -low or high)


@params
class PositionPoint(RegisterPoint):
    scale: float = param(unit="rad", above=0, default=1.0, doc="per count")


@params
class VelocityPoint(RegisterPoint):
    scale: float = param(unit="rad/s", above=0, default=1.0, doc="per count")


@params
class EffortPoint(RegisterPoint):
    scale: float = param(unit="N*m", above=0, default=1.0, doc="per count")


@params
class TemperaturePoint(RegisterPoint):
    scale: float = param(unit="degC", above=0, default=1.0, doc="per count")


@params
class TimePoint(RegisterPoint):
    scale: float = param(unit="s", above=0, default=1e-3, doc="per count")


@params
class Words(MapEntry):
    """Numbers that are written to a register, one after the other."""

    on: tuple[int, ...] = param(doc="to switch the drive on, without effort")
    off: tuple[int, ...] = param(doc="to switch it off")
    clear: tuple[int, ...] = param(doc="to clear its faults")

    def __post_init__(self) -> None:
        if not all(words and all(0 <= word <= 0xFFFF for word in words) for words in (self.on, self.off, self.clear)):
            raise ValueError("'on', 'off' and 'clear' are lists of numbers from 0 to 65535")
        if self.on[-1] == self.off[-1]:
            raise ValueError("'on' and 'off' end with the same number; one of them is wrong")


@params
class StatusBits(MapEntry):
    """A register with bits."""

    on: int = param(min=1, max=0xFFFF, doc="bits that are all set while the drive is on")
    fault: int = param(min=0, max=0xFFFF, default=0, doc="mask: a fault sets any of these bits")


@params
class Modes(MapEntry):
    """A register with the control mode."""

    effort: int = param(min=0, max=0xFFFF, default=0)
    velocity: int = param(min=0, max=0xFFFF, default=0)
    position: int = param(min=0, max=0xFFFF, default=0)


@params
class DriveModel(MapEntry):
    """A register that identifies the kind of the drive."""

    value: int = param(min=0, max=0xFFFF)


def setting_point(name: object, keys: object) -> RegisterPoint:
    """The register of a setting. Raises ValueError for keys that are wrong."""
    known = {"register", "type", "word_order", "scale"}
    if not isinstance(keys, dict) or not {"register"} <= keys.keys() <= known:
        raise ValueError(f"'settings.{name}' has 'register' and, if needed, {', '.join(sorted(known - {'register'}))}")
    point = RegisterPoint(**keys)
    numbers = point.register, point.scale
    if point.type not in codec.TYPES or point.word_order not in ("big", "little"):
        raise ValueError(f"'settings.{name}' has an unknown 'type' or 'word_order'; see the other registers")
    if not all(isinstance(n, int | float) for n in numbers) or not 0 <= point.register <= 0xFFFF or not point.scale > 0:
        raise ValueError(f"'settings.{name}' needs a register from 0 to 65535, and a scale above 0 without a unit")
    return point


@params
class Registers:
    """The map of a drive's registers."""

    position: PositionPoint = param()
    velocity: VelocityPoint = param()
    status: StatusBits = param()
    control: Words = param()
    effort: EffortPoint | None = param(default=None, doc="measured; default: none")
    temperature: TemperaturePoint | None = param(default=None)
    fault: RegisterPoint | None = param(default=None, doc="fault code, 0 without a fault")
    effort_target: EffortPoint | None = param(default=None)
    velocity_target: VelocityPoint | None = param(default=None)
    position_target: PositionPoint | None = param(default=None)
    mode: Modes | None = param(default=None)
    timeout: TimePoint | None = param(default=None, doc="the drive's watchdog; default: as set in the drive")
    effort_limit: EffortPoint | None = param(default=None, doc="is set to the joint's limit")
    model: DriveModel | None = param(default=None, doc="another drive is refused")
    max_effort: EffortPoint | None = param(default=None, doc="the drive's own limit")
    max_velocity: VelocityPoint | None = param(default=None, doc="the drive's own limit")
    read: Literal[3, 4] = param(default=3, doc="function: 4 for input registers")
    write: Literal[6, 16, 23] = param(default=23, doc="function of targets: 23 also reads")
    faults: dict | None = param(default=None, doc="name and fix by fault code")
    settings: dict | None = param(default=None, doc="registers that `cosim drives` saves, by name")
    store: DriveModel | None = param(default=None, doc="what lets the drive keep its settings without power")

    @property
    def setting_points(self) -> dict[str, RegisterPoint]:
        """Raises ValueError."""
        return {str(name): setting_point(name, keys) for name, keys in (self.settings or {}).items()}

    def __post_init__(self) -> None:
        if not (self.setting_points or self.store is None):
            raise ValueError("'store' is for 'settings'; give them, or take it out")
        if not any(self.target(mode) for mode in ("effort", "velocity", "position")):
            raise ValueError("give 'effort_target', 'velocity_target' or 'position_target'")
        if self.write == 23 and self.read == 4:
            raise ValueError("function 23 reads no input registers; give 'write: 16' or 'write: 6' with 'read: 4'")
        for key in ("effort_target", "velocity_target", "position_target", "timeout", "effort_limit"):
            point = getattr(self, key)
            if self.write == 6 and point is not None and len(point.span) > 1:
                raise ValueError(f"function 6 writes one register, and '{key}' has two; give 'write: 16'")
        check_fault_texts(self.faults)

    def target(self, mode: str) -> RegisterPoint | None:
        """Where the target of a mode is written."""
        return getattr(self, f"{mode}_target")


@params
class JointParams(wiring.JointParams):
    """The drive of a joint."""

    _: KW_ONLY
    id: int = param(min=1, max=247)
    registers: Registers = param()
