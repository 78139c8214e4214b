"""`moteus_tool --calibrate` of mjbots with an emulated drive of a rig: it finds the motor of the rig.

The tool talks over a real connection. The physics has a time of its own: a step for every frame, and the time for which
the tool sleeps at once, so that the result does not depend on the load of the machine.
"""

import asyncio
import json
import math
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import can
import moteus as mjbots
import pytest
from moteus import moteus_tool
from moteus.moteus_tool import Runner
from moteus.moteus_tool import Stream as ToolStream

from cosim.drivers.common.windings import MAGNET_ANGLE
from cosim.drivers.moteus.registers import TORQUE_FACTOR, Mode
from cosim.drivers.transport import now
from cosim.hardware.emulation.server import EmulationServer
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.test_moteus_reference import tool_arguments
from tests.kit.clock import MS

RESISTANCE, INDUCTANCE, TORQUE_CONSTANT = 0.3, 3e-4, 0.08
MOTOR = (
    f"{{type: dc_motor, resistance: {RESISTANCE}, inductance: {INDUCTANCE}, torque_constant: {TORQUE_CONSTANT},"
    " rotor_inertia: 1e-4, viscous: 2e-4}"
)
RIG = """\
schedule: {{step: 1 ms}}
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: a, axis: [0, 0, 1], parent: base, mass: 0.1, inertia: [1e-4, 1e-4, 1e-4]}}]
joints:
  a: {{limits: {{velocity: 400, effort: 4}}, actuator: {actuator}}}
controllers: [{{type: pid, kp: 1, ki: 0, kd: 0}}]
drivers: [{{type: moteus, {where}, joints: {{a: {{id: 1}}}}}}]
"""


class Bench:
    """An emulated drive that answers in a thread, and its time."""

    def __init__(self, server: EmulationServer) -> None:
        self.server, (self.connection,) = server, server.connections
        (self.servo,) = self.connection.drives.servos  # type: ignore
        (self.motor,) = self.connection.motors
        self.t_ns, self._lock, self._running = 0, threading.Lock(), True
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Bench":
        self.server.open()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._running = False
        self._thread.join()
        self.server.close()

    def run(self, seconds: float) -> None:
        with self._lock:
            for _ in range(round(1e3 * seconds)):
                self._step()

    def _step(self) -> None:
        self.t_ns += MS
        self.server.advance(self.t_ns)

    def _run(self) -> None:
        while self._running:
            frame = self.connection.link.receive(now() + 20 * MS)
            if frame is not None:
                with self._lock:
                    self._step()
                    self.connection.take(frame, self.t_ns)


Conversation = Callable[[Runner], Awaitable[Any]]


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    """Talk to the drive of a rig with this actuator as `moteus_tool` with these options; gives the drive."""
    monkeypatch.setattr(can, "Notifier", partial(can.Notifier, timeout=0.01))  # so that closing takes no second
    monkeypatch.setenv("MOTEUS_CAL_DIR", str(tmp_path))
    with ExitStack() as stack:

        def run(actuator: str, conversation: Conversation, *options: str, serial: bool = False) -> Bench:
            arguments, channel = tool_arguments("--calibrate", *options), uuid.uuid4().hex
            path = tmp_path / "rig.yaml"
            port = str(tmp_path / "fdcanusb")
            bus = f'bus: {{interface: virtual, channel: "{channel}", fd: true}}'
            path.write_text(RIG.format(actuator=actuator, where=f"port: {{port: {port}}}" if serial else bus))
            bench = stack.enter_context(Bench(emulation_of(read_rig(path), clock=lambda: 0)))

            async def sleep(seconds: float) -> None:
                bench.run(seconds)

            async def wait_for(awaited: Awaitable[Any], timeout: float) -> Any:
                return await asyncio.wait_for(awaited, 20.0)  # a loaded machine may take longer than the tool's 0.25 s

            clocked = vars(asyncio) | {"sleep": sleep}
            monkeypatch.setattr(sys.modules[mjbots.Stream.__module__], "asyncio", SimpleNamespace(**clocked))
            monkeypatch.setattr(moteus_tool, "asyncio", SimpleNamespace(**clocked | {"wait_for": wait_for}))
            monkeypatch.setattr(moteus_tool, "time", SimpleNamespace(time=lambda: bench.t_ns * 1e-9))

            async def whole() -> None:
                runner = Runner(arguments)
                if serial:
                    device: Any = mjbots.FdcanusbDevice(port)
                    device._checksum_active = False
                else:
                    device = mjbots.PythonCanDevice(interface="virtual", channel=channel)
                runner.transport = mjbots.Transport(device)
                try:
                    await conversation(runner)
                finally:
                    runner.transport.close()

            asyncio.run(whole())
            return bench

        yield run


async def calibrate(runner: Runner) -> None:
    await runner.run_action(1)


def test_the_tool_finds_the_motor_of_the_rig(talk: Callable[..., Bench], tmp_path: Path) -> None:
    bench = talk(MOTOR, calibrate, "--cal-ll-encoder-speed", "4", "--cal-ll-kv-voltage", "3")
    (path,) = tmp_path.glob("moteus-cal-*.log")
    found, saved = json.loads(path.read_text()), bench.servo.saved
    assert found["winding_resistance"] == pytest.approx(RESISTANCE / 1.5, rel=0.03)
    assert found["kv"] == pytest.approx(TORQUE_FACTOR / TORQUE_CONSTANT, rel=0.03)
    for name in ("inductance", "inductance_d", "inductance_q"):
        assert found[name] == pytest.approx(INDUCTANCE / 1.5, rel=0.05)
    assert found["calibration"]["poles"] == 14 and not found["calibration"]["phase_invert"]
    assert saved["motor.poles"] == 14 and saved["motor.Kv"] == pytest.approx(found["kv"], abs=1e-5)
    assert saved["motor.resistance_ohm"] == pytest.approx(found["winding_resistance"], abs=1e-5)
    assert_offsets(saved)
    assert bench.servo.mode == Mode.STOPPED and bench.motor.requested == 0.0


def assert_offsets(config: dict[str, float]) -> None:
    """Field and magnet are parallel over the turn."""
    away = [math.remainder(config[f"motor.offset.{k}"] - MAGNET_ANGLE, math.tau) for k in range(64)]
    assert max(map(abs, away)) < 0.1


@pytest.mark.parametrize("serial", [False, True], ids=["can", "serial"])
def test_the_tool_finds_the_commutation_by_voltage(talk: Callable[..., Bench], serial: bool) -> None:
    """As it does where the noise is large against the current."""

    async def conversation(runner: Runner) -> None:
        tool = ToolStream(runner.args, 1, runner.transport)
        tool.firmware = await tool.read_data("firmware")
        await tool.clear_motor_offsets()
        found: Any = await tool.calibrate_encoder_mapping(24.0, RESISTANCE / 1.5, 0.05, 1.0)
        assert found.poles == 14

    options = "--cal-ll-encoder-speed", "4", "--cal-never-encoder-current-mode"
    bench = talk(MOTOR, conversation, *options, serial=serial)
    assert_offsets(bench.servo.config)
    assert bench.servo.mode == Mode.STOPPED and bench.motor.requested == 0.0


def test_a_motor_without_windings_is_refused(talk: Callable[..., Bench]) -> None:
    with pytest.raises(mjbots.CommandError, match=r"^Error response:ERR motor not configured$"):
        talk("{type: ideal}", calibrate)
