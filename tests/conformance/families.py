"""Every driver family on disk, on every kind of connection that it offers, on a bench with two joints: in simulated
time, and one family on each kind of line in real time.

A folder of `drivers` with a codec or a driver is a family and must be a complete one. It needs an entry here only if
parameters without a default need a sample (`ADDRESSES`).
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import itertools
import json
import math
import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import yaml

from cosim.core.types import JointCommand, JointState
from cosim.execution.hardware.emulation.fault_injection import FaultInjection
from cosim.execution.hardware.emulation.server import EmulationServer
from cosim.execution.hardware.emulation.stepped_line import LineEnd, SimulatedTime, SteppedLine, join
from cosim.plugins import drivers
from cosim.plugins.drivers.common import family
from cosim.plugins.drivers.transport import CanParams, SerialParams, now
from cosim.rig.emulate import emulation_of
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import RigSpec, read_rig

from .compiled import InMachineCode
from .rules import PATIENCE, processor_limit, prompt, time_had

FOLDER = Path(next(iter(drivers.__path__)))
BESIDES = {"common", "sim"}  # folders that are not a family of hardware
NEEDED = ("MODES", "JointParams", "Params", "connection_name", "device", "emulate", "host", "load", "traffic")

# of the registers of two Modbus drives that differ in as much as they may
MAPS = yaml.safe_load(Path(__file__).with_name("register_maps.yaml").read_text())
WHOLE_NUMBERS, FLOATS = MAPS["whole_numbers"], MAPS["floats"]
# addresses of two drives, unless `id: 1` and `id: 2`; by family or by case
_VESC = {"pole_pairs": 7, "torque_constant": 0.01}
_MIT = {"model": "custom", "max_position": 12.5, "max_velocity": 20.0, "max_effort": 1.0, "kp": 0.35, "kd": 0.1}
ADDRESSES: dict[Any, tuple[dict, dict]] = {
    ("odrive", "pty"): ({"axis": 0}, {"axis": 1}),
    "vesc": ({"id": 1, **_VESC}, {"id": 2, **_VESC}),
    ("vesc", "pty"): ({"id": 1, **_VESC}, {"id": 2, "forward": True, **_VESC}),
    "mit": (
        {"id": 1, "master": 17, "protocol": "mini_cheetah", **_MIT},
        {"id": 2, "master": 18, "protocol": "damiao", **_MIT},
    ),
    "modbus": ({"id": 1, "registers": WHOLE_NUMBERS}, {"id": 2, "registers": FLOATS}),
    "serial_text": ({"id": 1, "model": "arm"}, {"id": 2}),
}
LINES: dict[type, tuple[str, ...]] = {CanParams: ("virtual", "udp_multicast"), SerialParams: ("pty",)}
PAUSE = 0.004  # s between two looks
BUDGET = 2500  # steps of 1 ms of the emulation; a stalling machine makes fewer
QUIET = 20  # ms without effort after which a motor that was decelerated counts as off
JOINTS = ("a", "b")
SCALES = {"a": -2.0, "b": 1.0}  # drive position / joint position
WIRING = ({"direction": -1, "ratio": 2, "zero": 0.3}, {})
START = (0.4, -0.2)  # rad, initial positions of the joints
_numbers = itertools.count()


class Case(NamedTuple):
    """A family on a kind of connection; compiled: it reads and writes in machine code; stepped: in simulated time, on a
    line in memory in place of the connection."""

    family: str
    line: str
    compiled: bool = False
    stepped: bool = False

    def __str__(self) -> str:
        return f"{self.family}-{self.line}{'-compiled' * self.compiled}{'-stepped' * self.stepped}"

    @property
    def module(self) -> ModuleType:
        return importlib.import_module(f"cosim.plugins.drivers.{self.family}")


def folders() -> list[str]:
    """Names of the folders that must be a family."""
    those = (path for path in FOLDER.iterdir() if path.is_dir() and path.name not in BESIDES)
    return sorted(p.name for p in those if any([*p.glob("*codec.py"), *p.glob("*driver.py")]))


def lacking(name: str) -> str:
    """What a folder lacks to be a family, empty for nothing."""
    try:
        module = importlib.import_module(f"cosim.plugins.drivers.{name}")
    except Exception as error:
        return f"drivers/{name} cannot be imported: {type(error).__name__}: {error}"
    missing = [word for word in NEEDED if not hasattr(module, word)]
    if missing:
        return f"drivers/{name} has a codec or a driver and is no family: it does not define {', '.join(missing)}"
    if not lines(module):
        return f"drivers/{name}: no field of its Params is a CAN bus or a serial port"
    taken = [f for f in dataclasses.fields(module.JointParams) if f.default is f.default_factory is dataclasses.MISSING]
    others = [f.name for f in taken if f.name != "id"]
    if others and not any(key == name or key[0] == name for key in ADDRESSES):
        return f"drivers/{name}: say in ADDRESSES what to give for {', '.join(others)} of its JointParams"
    return ""


def lines(module: ModuleType) -> dict[str, tuple[str, type]]:
    """Kind of connection -> (field of Params that describes it, class of the field)."""
    found = {}
    for name, hint in get_type_hints(module.Params).items():
        for kind in (hint, *get_args(hint)):
            for base, those in LINES.items():
                if isinstance(kind, type) and issubclass(kind, base):
                    found.update((line, (name, kind)) for line in those)
    return found


@cache
def cases() -> tuple[Case, ...]:
    """All cases; a folder that is not a family has its own test."""
    good = [name for name in folders() if not lacking(name)]
    found = [
        Case(name, line) for name in good for line in lines(importlib.import_module(f"cosim.plugins.drivers.{name}"))
    ]
    return tuple(found + [case._replace(compiled=True) for case in found if compiles(case)])


def compiles(case: Case) -> bool:
    """Whether its cycle can run in machine code."""
    return not unwired(case).why_not_compiled


@cache
def stepped_cases() -> tuple[Case, ...]:
    """Every family in simulated time, on a bus and on a serial line."""
    return tuple(case for case in _all_stepped() if not is_adapter(case))


@cache
def adapters() -> tuple[Case, ...]:
    """Families whose frames an adapter carries as text on a serial line, in simulated time."""
    return tuple(case for case in _all_stepped() if is_adapter(case))


def _all_stepped() -> list[Case]:
    return [case._replace(stepped=True) for case in cases() if not case.compiled and case.line != "udp_multicast"]


@cache
def real_cases() -> tuple[Case, ...]:
    """A family on each kind of line between processes in real time, in Python and in machine code: the first one, or
    COSIM_FAMILY where it has such a line."""
    found: dict[Any, Case] = {}
    for case in sorted(cases(), key=lambda case: case.family != os.environ.get("COSIM_FAMILY")):
        if case.line != "virtual":
            found.setdefault((case.line, is_fd(case), case.compiled), case)
    return tuple(found.values())


def is_fd(case: Case) -> bool:
    """Whether its frames are of CAN FD."""
    with TemporaryDirectory() as folder:
        line = section(case, Path(folder))[lines(case.module)[case.line][0]]
    return line.get("fd", False)


@cache
def is_adapter(case: Case) -> bool:
    """Whether it carries the frames of a bus as text on a serial port."""
    return hasattr(unwired(case).link, "serial")


@cache
def load_cycle(case: Case) -> None:
    """Compile what the cycles of all its drivers share: that takes longer than a test may."""
    if case.compiled:
        unwired(case).load_cycle()


def unwired(case: Case) -> Any:
    """A driver in Python that is not opened."""
    with TemporaryDirectory() as folder:
        data = rig(section(case, Path(folder)), addresses(case))
        return driver_of(case._replace(compiled=False), read_rig(write_rig(Path(folder) / "rig.yaml", data)))


def driver_of(case: Case, spec: RigSpec) -> Any:
    """The driver of a rig of one driver; in machine code if the case says so."""
    context = Rig(spec, interpret=True).contexts[spec.drivers[0].name]
    driver = spec.drivers[0].plugin.module.load(spec.drivers[0].plugin.params, context)
    return InMachineCode(driver) if case.compiled else driver


def in_simulated_time(spec: RigSpec, device: RigSpec, time: SimulatedTime) -> tuple[Any, EmulationServer, LineEnd]:
    """The driver of a rig of one driver, its drives on a line in memory, and its end of this line."""
    (driver,) = spec.drivers
    name = driver.family.connection_name(driver.plugin.params)
    lines = {driver.name: SteppedLine(name, time, can=True)}  # so that it can be lost
    server = emulation_of(device, clock=time.now, lines=lines)
    join(server, lines, time)
    context = dataclasses.replace(Rig(spec, interpret=True).contexts[driver.name], ends=lines[driver.name].ends)
    return driver.plugin.module.load(driver.plugin.params, context), server, lines[driver.name].host


def channel() -> int:
    """A number that no other test uses at the same time, in any process."""
    return zlib.crc32(f"{os.getpid()} {next(_numbers)}".encode()) % 0xFFFFFF


def section(case: Case, folder: Path, **keys: Any) -> dict[str, Any]:
    """The driver's section of a rig without its joints, on its own connection."""
    field, kind = lines(case.module)[case.line]
    number = channel()
    if case.line == "pty":
        line = {"port": str(folder / f"tty{number}"), "baudrate": 1e6}
    else:
        multicast = f"239.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        name = multicast if case.line == "udp_multicast" else f"conformance {number}"
        line = {"interface": case.line, "channel": name}
        try:
            case.module.Params(**{field: kind(**line)})
        except ValueError:  # raised by drives of CAN FD for classic CAN
            line |= {"fd": True, "data_bitrate": 5e6}
    return {"type": case.family, field: line, **keys}


def addresses(case: Case) -> tuple[dict, dict]:
    return ADDRESSES.get((case.family, case.line), ADDRESSES.get(case.family, ({"id": 1}, {"id": 2})))


def rig(driver: dict[str, Any], joints: Sequence[dict], **sections: Any) -> dict[str, Any]:
    """A rig of two decoupled joints behind one driver; at the drives their motions are equal."""
    bodies, settings = [], {}
    for name, start in zip(JOINTS, START, strict=True):
        square, size = SCALES[name] ** 2, abs(SCALES[name])
        inertia = 4e-4 * square
        bodies.append({"name": name, "mass": 0.1, "inertia": [inertia] * 3, "damping": 0.008 * square})
        limits = {"lower": -3 / size, "upper": 3 / size, "velocity": 4 / size, "effort": 0.2 * size}
        settings[name] = {"initial": {"position": start}, "limits": limits}
    wiring = [{**where, **how} for where, how in zip(joints, WIRING, strict=True)]
    return {
        "mechanism": {"gravity": [0, 0, 0], "bodies": bodies},
        "joints": settings,
        "drivers": [{**driver, "joints": dict(zip(JOINTS, wiring, strict=True))}],
        "emulator": {"joints": {"all": {"max_velocity": 40}}},
        "schedule": {"step": "20 ms"},
        **sections,
    }


def write_rig(path: Path, data: dict[str, Any]) -> Path:
    path.write_text(json.dumps(data))  # which is YAML too
    return path


def fault(kind: str, **keys: Any) -> FaultInjection:
    """A permanent fault of a connection."""
    rest = {"at": 0.0, "signal": "", "factor": 1.0, "bound": 0.0, "duration": math.inf, "fraction": 1.0, "delay": 0.0}
    return FaultInjection(**{**rest, "kind": kind, "driver": "", "joint": "", "size": 0.0, "cause": "", **keys})


class Bench:
    """A driver at one end of a connection, and emulated drives at the other: in a thread of their own, or in simulated
    time, which passes while the driver waits and between two looks.

    keys: of the driver's section; host, device: change the rig of the one and of the other end.
    """

    def __init__(
        self,
        case: Case,
        folder: Path,
        host: Callable[[dict], object] | None = None,
        device: Callable[[dict], object] | None = None,
        **keys: Any,
    ) -> None:
        self.case = case
        data = rig(section(case, folder, **{"watchdog": 1.0, **keys}), addresses(case))

        def spec_of(name: str, change: Callable[[dict], object] | None) -> RigSpec:
            changed = copy.deepcopy(data)
            if change is not None:
                change(changed)
            return read_rig(write_rig(folder / name, changed))

        spec = spec_of("rig.yaml", host)
        device_spec = spec if host is None and device is None else spec_of("device.yaml", device)
        self.spec = spec.drivers[0]
        self.time = SimulatedTime() if case.stepped else None
        if self.time is None:
            self.driver: Any = driver_of(case, spec)
            self.emulation = emulation_of(device_spec)
        else:
            self.driver, self.emulation, self.host_end = in_simulated_time(spec, device_spec, self.time)
        self.line = self.emulation.connections[0]
        self.motors = self.emulation.motors.motors
        self.out = JointState.zeros(len(self.spec.joints))
        self.failure: BaseException | None = None
        self._bounds = ExitStack()
        self._errands: deque[Callable[[], object]] = deque()
        self._thread = threading.Thread(target=self._serve, name=f"emulation of {case}")

    def _serve(self) -> None:
        try:
            while not self.emulation.stopped:
                while self._errands:
                    self._errands[0]()
                    self._errands.popleft()
                self.emulation.step()
        except BaseException as error:
            self.failure = error

    def now(self) -> int:
        """ns"""
        return now() if self.time is None else self.time.now()

    def there(self, errand: Callable[[], object]) -> None:
        """Call an action in the drives' thread, between two of their steps, and let them step."""
        if self.time is not None:
            errand()
            self.wait(PAUSE)
            return
        self._errands.append(errand)
        for _ in self.until(lambda: not self._errands):
            pass

    def __enter__(self) -> Bench:
        self.emulation.open()
        if self.time is None:
            self._thread.start()
        else:
            self._bounds.enter_context(processor_limit())
            self.wait(PAUSE)
        self._begun = time.process_time()
        time_had.append(self._time_had)
        return self

    def _time_had(self) -> float:
        return self.emulation.steps * 1e-3 if self.time is None else time.process_time() - self._begun

    def __exit__(self, *_: object) -> None:
        time_had.remove(self._time_had)
        try:
            self.driver.close()
        finally:
            self.emulation.stopped = True
            if self._thread.is_alive():
                self._thread.join(PATIENCE)
            self.emulation.close()
            self._bounds.close()
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure

    # --- the control loop -----------------------------------------------------------------------

    def open(self, mode: str = "") -> Any:
        """Open the driver and enable a mode."""
        self.driver.open()
        self.fresh()
        if mode:
            self.driver.enable(mode)
        return self.driver

    def command(self, valid: float = 5.0, **fields: float | Sequence[float]) -> JointCommand:
        """A command for both joints; default: hold the last measured positions without effort."""
        cmd = JointCommand.zeros(len(self.spec.joints))
        cmd.position[:] = self.out.position
        for name, value in fields.items():
            getattr(cmd, name)[:] = value
        cmd.valid_until_ns = self.now() + round(valid * 1e9)
        return cmd

    def write(self, **fields: Any) -> None:
        self.driver.write(self.command(**fields), self.now() + 100_000_000)

    def read(self, within: float = 0.1) -> JointState:
        with prompt(7):
            self.driver.read(self.out, self.now() + round(within * 1e9))
        return self.out

    def fresh(self) -> JointState:
        """Feedback that was measured after this call."""
        begun = self.now()
        for _ in self.until(lambda: self.out.t_ns > begun):
            self.read()
        return self.out

    def drive(self, seen: Callable[[], object], **fields: Any) -> None:
        """Repeat a command until the condition is met."""
        for _ in self.until(seen):
            self.write(**fields)
            self.read()
            assert not self.out.fault.any(), self.words()

    def until(self, seen: Callable[[], object], seconds: float = PATIENCE) -> Iterator[None]:
        """Iterations every 4 ms until the condition is met."""
        end, steps = self.now() + round(seconds * 1e9), self.emulation.steps + BUDGET
        while not seen():
            assert self.failure is None, self.failure
            in_time = self.now() < end and self.emulation.steps < steps
            assert in_time, f"never seen; {self.out}, asked {self.asked}"
            yield
            self.wait(PAUSE)

    def wait(self, seconds: float) -> None:
        if self.time is None:
            time.sleep(seconds)
        else:
            self.time.wait_until(self.time.now() + round(seconds * 1e9))

    # --- observation of the drives ------------------------------------------------------------

    def words(self) -> list[str]:
        """The descriptions of the faults."""
        return [self.driver.describe_fault(k, int(code)) for k, code in enumerate(self.out.fault) if code]

    @property
    def asked(self) -> list[float]:
        """Efforts at the drives."""
        return [motor.requested for motor in self.motors]

    @property
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """(position, velocity) of the joints."""
        position, velocity, _ = self.emulation.motors.plant.sample
        return position.copy(), velocity.copy()

    def off(self, seconds: float = 0.05) -> None:
        """Motors switch off and stay off; on a ramp, the requested effort may be 0 now and then."""
        asked = self.emulation.steps
        for _ in self.until(lambda: False):
            if any(self.asked):
                asked = self.emulation.steps
            elif self.emulation.steps >= asked + QUIET:
                break
        steps = self.emulation.steps + round(seconds * 1e3)
        for _ in self.until(lambda: self.emulation.steps >= steps):
            assert not any(self.asked)

    def asking(self) -> list[tuple[int, float]]:
        """(step, effort) of all requests of the drives to their motors from now on."""
        rows: list[tuple[int, float]] = []

        def listen() -> None:
            for motor in self.motors:
                motor.request = self._listened(motor, motor.request, rows)

        self.there(listen)
        return rows

    def _listened(self, motor: Any, ask: Callable[[float], None], rows: list) -> Callable[[float], None]:
        def listened(effort: float) -> None:
            ask(effort)
            rows.append((self.emulation.steps, motor.requested))

        return listened

    def disturb(self, *kinds: str) -> None:
        """Set the fault of the connection."""
        self.line.faulty_connection.begin([fault(kind) for kind in kinds])

    def lend(self, patch: Any) -> None:
        """In simulated time, whatever connection this program opens is the driver's end of the line."""
        if self.time is not None:
            patch.setattr(family, "host_link", lambda params, place: self.host_end)

    def lose_connection(self) -> None:
        """For the driver, until it is opened again, and for the drives of a serial link until `open_device`."""
        if self.time is not None:
            self.line.link.bus_off()
        elif self.case.line == "pty":
            self.there(self.line.link.close)
        else:
            self.driver.link._bus.shutdown()

    def open_device(self) -> None:
        """A serial link that was lost."""
        if self.time is None and self.case.line == "pty":
            self.there(self.line.link.open)
