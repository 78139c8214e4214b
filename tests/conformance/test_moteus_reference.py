"""mjbots' own Python package as the client of emulated drives."""

import asyncio
import math
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import can
import moteus as mjbots
import numpy as np
import pytest
from moteus import moteus_tool, transport_factory
from moteus.moteus_tool import Runner
from moteus.moteus_tool import Stream as ToolStream

from cosim.drivers import moteus as family
from cosim.drivers.common.motor import Rotor
from cosim.drivers.transport import CanParams, SerialParams, now
from cosim.errors import SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits
from cosim.units import TURN

pytestmark = pytest.mark.real_time

R: Any = mjbots.Register

NODES = (1, 12)


Talk = Callable[[Callable[[mjbots.Transport], Awaitable[Any]]], Any]


class Bench:
    """Emulated drives on a line of their own, in a thread that turns their rotors in real time."""

    def __init__(self, params: family.Params) -> None:
        self.rotors = [Rotor() for _ in NODES]
        wiring = tuple(family.JointParams(id=node) for node in NODES)
        open_ends = Limits(*(np.full(2, end) for end in (-np.inf, np.inf, np.inf, np.inf)))
        names = tuple(f"j{node}" for node in NODES)
        self.params = params
        self.context = context = DriverContext(
            names, wiring, open_ends, 1e-3, "effort", lambda *keys: SourceLocation("rig.yaml", 1, ".".join(keys))
        )
        self.emulator = family.emulate(params, context, self.rotors)
        self.link = family.device(params, context)
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def servos(self) -> list[Any]:
        return self.emulator.servos

    def __enter__(self) -> "Bench":
        self.link.open()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._running = False
        self._thread.join()
        self.link.close()

    def wait(self, for_what: Callable[[], bool]) -> bool:
        """Whether it comes true within 2 s."""
        end_ns = now() + 2_000_000_000
        while not for_what() and now() < end_ns:
            time.sleep(0.001)
        return for_what()

    def _run(self) -> None:
        t_ns = now()
        self.emulator.reset(t_ns)
        while self._running:
            t_ns += 1_000_000
            while (frame := self.link.receive(t_ns)) is not None:
                for answer in self.emulator.handle(frame, now()):
                    self.link.send(answer, now() + 10_000_000)
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.emulator.process(t_ns)


@pytest.fixture(params=["can", "serial", "serial without checksums"])
def bench_and_talk(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Bench, Talk]]:
    """The drives, and what runs a conversation with them: it gets the mjbots's Transport."""
    if request.param == "can":
        channel = uuid.uuid4().hex
        monkeypatch.setattr(can, "Notifier", partial(can.Notifier, timeout=0.01))  # so that closing takes no second
        params = family.Params(bus=CanParams("virtual", channel, fd=True))
    else:
        port = str(tmp_path / "fdcanusb")
        params = family.Params(port=SerialParams(port))  # the client has a baud rate of its own

    def transport() -> mjbots.Transport:
        if request.param == "can":
            return mjbots.Transport(mjbots.PythonCanDevice(interface="virtual", channel=channel))
        device = mjbots.FdcanusbDevice(port)
        device._checksum_active = request.param == "serial"
        return mjbots.Transport(device)

    def talk(conversation: Callable[[mjbots.Transport], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            line = transport()
            try:
                return await asyncio.wait_for(conversation(line), 10.0)
            finally:
                line.close()
                await asyncio.sleep(0)

        return asyncio.run(whole())

    with Bench(params) as bench:
        yield bench, talk


def controllers(line: mjbots.Transport) -> list[Any]:
    return [mjbots.Controller(id=node, transport=line) for node in NODES]


async def reach(controller: Any, mode: int, enough: Callable[[Any], bool] = lambda values: True, **command: Any) -> Any:
    """The values once the drive is in this mode and they are enough; commands position mode until then, if any."""
    end = asyncio.get_running_loop().time() + 5.0
    while True:
        result = await (controller.set_position(query=True, **command) if command else controller.query())
        if result.values[R.MODE] == mode and enough(result.values):
            return result.values
        assert asyncio.get_running_loop().time() < end, f"mode {mode} is not reached: {result}"
        await asyncio.sleep(0.002)


def test_a_session(bench_and_talk: tuple[Bench, Talk]) -> None:
    bench, talk = bench_and_talk
    bench.rotors[0].position = 0.25 * TURN

    async def conversation(line: mjbots.Transport) -> None:
        first, second = controllers(line)
        result = await first.set_stop(query=True)
        assert result.id == 1 and result.values[R.MODE] == mjbots.Mode.STOPPED
        assert result.values[R.POSITION] == pytest.approx(0.25, abs=1e-3)
        assert (result.values[R.VOLTAGE], result.values[R.TEMPERATURE], result.values[R.FAULT]) == (24.0, 25.0, 0)
        # to a position along a trajectory
        goal: dict[str, Any] = {
            "position": 0.5,
            "velocity": 0.0,
            "velocity_limit": 2.0,
            "accel_limit": 20.0,
            "watchdog_timeout": 5.0,
        }
        await reach(first, mjbots.Mode.POSITION, lambda values: abs(values[R.POSITION] - 0.5) < 0.05, **goal)
        # a torque, on the other drive
        torque: dict[str, Any] = {"kp_scale": 0.0, "kd_scale": 0.0, "ilimit_scale": 0.0, "feedforward_torque": 0.2}
        torque |= {"position": math.nan, "watchdog_timeout": 5.0}
        values = await reach(second, mjbots.Mode.POSITION, lambda values: values[R.VELOCITY] > 0.5, **torque)
        assert values[R.TORQUE] == pytest.approx(0.2) and bench.rotors[1].velocity > 3.0
        await second.set_brake()
        await reach(second, mjbots.Mode.BRAKE)
        # both at once
        results = await line.cycle([c.make_stop(query=True) for c in (first, second)])
        assert [r.id for r in results] == list(NODES)
        results = await line.cycle([c.make_query() for c in (first, second)])
        assert [r.values[R.MODE] for r in results] == [0, 0] and all(r.effort == 0.0 for r in bench.rotors)

    talk(conversation)


def test_watchdog_fault_and_clearing(bench_and_talk: tuple[Bench, Talk]) -> None:
    bench, talk = bench_and_talk

    async def conversation(line: mjbots.Transport) -> None:
        drive = controllers(line)[0]
        here: dict[str, Any] = {"position": math.nan, "watchdog_timeout": 0.1}
        await reach(drive, mjbots.Mode.POSITION, **here)
        await reach(drive, mjbots.Mode.TIMEOUT)
        with pytest.raises(mjbots.FaultError, match=r"^Fault mode=11 code=0$"):
            await mjbots.move_to(drive, position=1.0)
        await drive.set_stop()
        here["watchdog_timeout"] = 5.0
        await reach(drive, mjbots.Mode.POSITION, **here)
        bench.rotors[0].fault_cause = "overtemperature"
        values = await reach(drive, mjbots.Mode.FAULT, **here)
        assert values[R.FAULT] == 38
        bench.rotors[0].fault_cause = ""
        for _ in range(20):
            values = await reach(drive, mjbots.Mode.FAULT, **here)
        await drive.set_stop()
        assert (await drive.query()).values[R.FAULT] == 0

    talk(conversation)


def test_queries_of_every_kind(bench_and_talk: tuple[Bench, Talk]) -> None:
    bench, talk = bench_and_talk
    bench.rotors[0].position, bench.rotors[0].temperature = -0.75 * TURN, 41.0

    async def conversation(line: mjbots.Transport) -> None:
        for resolution in (mjbots.INT16, mjbots.INT32, mjbots.F32):
            wanted = mjbots.QueryResolution()
            for name in (
                *("mode", "position", "velocity", "torque", "q_current", "d_current", "abs_position", "power"),
                *("motor_temperature", "trajectory_complete", "home_state", "voltage", "temperature", "fault"),
            ):
                setattr(wanted, name, mjbots.INT16 if resolution != mjbots.INT16 and name[0] in "mt" else resolution)
            if resolution != mjbots.INT16:  # else the answer does not fit into a frame
                wanted.motor_temperature = wanted.trajectory_complete = wanted.home_state = mjbots.IGNORE
                wanted.power = wanted.abs_position = wanted.d_current = mjbots.IGNORE
            drive: Any = mjbots.Controller(id=1, query_resolution=wanted, transport=line)
            values = (await drive.query()).values
            assert values[R.POSITION] == pytest.approx(-0.75, abs=1e-4) and values[R.VOLTAGE] == pytest.approx(24.0)
            assert values[R.TEMPERATURE] == pytest.approx(41.0)
        values = (
            await controllers(line)[0].custom_query(
                {
                    R.CONTROL_POSITION: mjbots.F32,
                    R.CONTROL_VELOCITY: mjbots.F32,
                    R.ENCODER_VALIDITY: mjbots.INT8,
                    R.MILLISECOND_COUNTER: mjbots.INT32,
                    R.ENCODER_0_POSITION: mjbots.INT16,
                }
            )
        ).values
        assert math.isnan(values[R.CONTROL_POSITION]) and values[R.ENCODER_VALIDITY] == 3
        assert values[R.ENCODER_0_POSITION] == pytest.approx(0.25, abs=1e-4)
        values = (
            await controllers(line)[1].custom_query(
                {R.MODEL_NUMBER: mjbots.INT32, R.FIRMWARE_VERSION: mjbots.INT32, R.REGISTER_MAP_VERSION: mjbots.INT32}
            )
        ).values
        assert list(values.values()) == [0, 0x010100, 5]

    talk(conversation)


def test_outputs_and_positions_set(bench_and_talk: tuple[Bench, Talk]) -> None:
    _, talk = bench_and_talk

    async def conversation(line: mjbots.Transport) -> None:
        drive = controllers(line)[1]
        await drive.set_output_exact(position=2.25)
        assert (await drive.query()).values[R.POSITION] == pytest.approx(2.25)
        await drive.set_output_nearest(position=-0.9)
        assert (await drive.query()).values[R.POSITION] == pytest.approx(-0.75)
        await drive.set_require_reindex()
        assert (await drive.custom_query({R.HOME_STATE: mjbots.INT8})).values[R.HOME_STATE] == 0
        await drive.set_write_gpio(aux1=2, aux2=4)
        assert (
            await drive.custom_query({R.AUX1_GPIO_COMMAND: mjbots.INT8, R.AUX2_GPIO_COMMAND: mjbots.INT8})
        ).values == {R.AUX1_GPIO_COMMAND: 2, R.AUX2_GPIO_COMMAND: 4}
        assert await drive.read_gpio() == b"\x00\x00"
        await drive.set_stay_within(lower_bound=-1.0, upper_bound=1.0, watchdog_timeout=math.nan)
        await reach(drive, mjbots.Mode.STAY_WITHIN)
        await drive.set_zero_velocity(kd_scale=2.0)
        await reach(drive, mjbots.Mode.ZERO_VELOCITY)
        await drive.set_current(d_A=0.0, q_A=1.5)
        await reach(drive, mjbots.Mode.CURRENT, lambda values: abs(values[R.TORQUE] - 0.15) < 1e-6)
        await drive.set_stop()

    talk(conversation)


def test_the_diagnostic_stream(bench_and_talk: tuple[Bench, Talk]) -> None:
    bench, talk = bench_and_talk

    async def conversation(line: mjbots.Transport) -> None:
        stream = mjbots.Stream(controllers(line)[0])
        await stream.command(b"tel stop")
        assert float(await stream.command(b"conf get servo.pid_position.kp", allow_any_response=True)) == 4.0
        await stream.command(b"conf set servo.pid_position.kp 2.5")
        assert bench.servos[0].config["servo.pid_position.kp"] == 2.5
        with pytest.raises(mjbots.CommandError, match="ERR error setting"):
            await stream.command(b"conf set servo.nothing 1")
        listed = await stream.command(b"conf enumerate")
        assert b"servo.default_timeout_s 0.100000" in listed and len(listed.splitlines()) > 30
        stats = await stream.read_data("servo_stats")
        assert stats.mode == 0 and stats.bus_V == 24.0
        await stream.command(b"d pos nan 0 nan")
        await reach(controllers(line)[0], mjbots.Mode.POSITION)
        assert (await stream.read_data("servo_stats")).mode == 10
        await stream.command(b"d stop")
        plain = mjbots.Stream(controllers(line)[1], use_flow_control=False)
        assert await plain.command(b"conf get id.id", allow_any_response=True) == b"12"
        assert b"uuid.uuid.15 12" in await plain.command(b"conf enumerate")

    talk(conversation)


def test_the_manufacturers_tool_identifies_the_drive(bench_and_talk: tuple[Bench, Talk]) -> None:
    bench, talk = bench_and_talk

    class Arguments:
        verbose, can_prefix, diagnostic_channel = False, 0, 1

    async def conversation(line: mjbots.Transport) -> None:
        tool = ToolStream(Arguments(), NODES[1], line)
        info = await tool.get_device_info()
        assert uuid.UUID(info["uuid"]).bytes == bench.servos[1].uuid and info["model"] == "0"

    talk(conversation)


@pytest.mark.parametrize(("options", "position"), [(["--zero-offset"], 0.0), (["--set-offset", "2.25"], 2.25)])
def test_the_manufacturers_tool_sets_the_zero_of_the_output(
    bench_and_talk: tuple[Bench, Talk], options: list[str], position: float
) -> None:
    bench, talk = bench_and_talk
    servo = bench.servos[1]
    bench.rotors[1].position = 0.3 * TURN
    arguments = tool_arguments(*options)

    async def conversation(line: mjbots.Transport) -> None:
        runner = Runner(arguments)
        runner.transport = line
        await runner.run_action(NODES[1])
        assert (await controllers(line)[1].query()).values[R.POSITION] == pytest.approx(position, abs=1e-5)

    talk(conversation)
    assert bench.servos[0].saved["motor_position.output.offset"] == 0.0
    servo.reset(now())  # the offset was saved
    away = servo.encoder + servo.offset - position
    assert away == pytest.approx(round(away), abs=1e-5)


def tool_arguments(*options: str) -> Any:
    """What moteus_tool makes of its command line."""
    caught: list[Any] = []

    class Caught(Exception):
        pass

    def runner(arguments: Any) -> None:
        caught.append(arguments)
        raise Caught

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moteus_tool, "Runner", runner)
        patch.setattr("sys.argv", ["moteus_tool", *options])
        with pytest.raises(Caught):
            asyncio.run(moteus_tool.async_main())
    return caught[0]


def command_line(bench: Bench, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    """Run moteus_tool as from a shell, on the bench's connection."""
    params = bench.params
    if params.bus is not None:
        line = ["--force-transport", "pythoncan", "--can-iface", "virtual", "--can-chan", params.bus.channel]
    else:
        assert params.port is not None
        line = ["--force-transport", "fdcanusb", "--fdcanusb", params.port.port]
    monkeypatch.setattr(transport_factory, "GLOBAL_TRANSPORT", None)
    monkeypatch.setattr("sys.argv", ["moteus_tool", *line, *options])

    async def whole() -> None:
        try:
            await asyncio.wait_for(moteus_tool.async_main(), 10.0)
        finally:
            transport_factory.GLOBAL_TRANSPORT.close()
            await asyncio.sleep(0)

    asyncio.run(whole())


def test_the_manufacturers_tool_from_the_command_line(
    bench_and_talk: tuple[Bench, Talk],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    bench, _ = bench_and_talk
    run = partial(command_line, bench, monkeypatch)
    run("--info")  # of all drives that it finds
    info = capsys.readouterr().out
    assert [uuid.UUID(line.split('"')[3]).bytes for line in info.splitlines() if '"uuid"' in line] == [
        servo.uuid for servo in bench.servos
    ]
    run("-t", "12", "--dump-config")
    assert "id.id 12" in capsys.readouterr().out.splitlines()
    changes = tmp_path / "changes.cfg"
    changes.write_text("conf set servo.max_current_A 3.5\n")
    run("-t", "12", "--write-config", str(changes))
    assert [servo.config["servo.max_current_A"] for servo in bench.servos] == [20.0, 3.5]
    run("-t", "1", "--read", "servo_stats")
    assert '"bus_V": 24.0' in capsys.readouterr().out
    assert bench.emulator.unknown.count == 0


def test_telemetry_at_a_rate(bench_and_talk: tuple[Bench, Talk]) -> None:
    """As mjbots' tview has it: by `tel rate`, until `tel stop`."""
    bench, talk = bench_and_talk

    async def conversation(line: mjbots.Transport) -> None:
        stream = mjbots.Stream(controllers(line)[0])
        await stream.command(b"tel stop")
        await stream.command(b"tel fmt motor_position 0")
        await stream.command(b"tel rate motor_position 5")
        for _ in range(3):
            assert await stream.readline() == b"emit motor_position"
            assert len(await stream.read_binary_blob()) == 11
        await stream.write_message(b"tel stop")
        assert bench.wait(lambda: not bench.servos[0].rates)
        with pytest.raises(mjbots.CommandError, match="ERR unknown name"):
            await mjbots.Stream(controllers(line)[1]).command(b"tel rate nothing 5")

    talk(conversation)


def test_drives_are_discovered_and_reached_by_uuid(bench_and_talk: tuple[Bench, Talk]) -> None:
    bench, talk = bench_and_talk

    async def conversation(line: mjbots.Transport) -> None:
        found = await line.discover(timeout=0.1)
        assert [(device.can_id, device.uuid) for device in found] == [
            (node, servo.uuid) for node, servo in zip(NODES, bench.servos, strict=True)
        ]
        address: Any = mjbots.DeviceAddress(uuid=bench.servos[1].uuid)
        drive: Any = mjbots.Controller(id=address, transport=line)
        result = await drive.set_brake(query=True)
        assert result.id == 12
        await reach(controllers(line)[1], mjbots.Mode.BRAKE)
        assert [servo.mode for servo in bench.servos] == [0, 15]

    talk(conversation)


def test_the_driver_on_the_same_connections(bench_and_talk: tuple[Bench, Talk]) -> None:
    """The project's own driver with the same drives on the same real connections."""
    bench, _ = bench_and_talk
    driver = family.load(bench.params, bench.context)
    state, command = JointState.zeros(2), JointCommand.zeros(2)
    driver.open()
    driver.enable("effort")
    command.effort[:] = 0.2, -0.1
    for _ in range(30):
        command.valid_until_ns = now() + 50_000_000
        driver.write(command, now() + 20_000_000)
        driver.read(state, now() + 20_000_000)
    assert state.effort == pytest.approx([0.2, -0.1]) and state.velocity[0] > 0 > state.velocity[1]
    assert state.fault.tolist() == [0, 0] and driver.lost == 0
    driver.close()
    assert bench.wait(lambda: [servo.mode for servo in bench.servos] == [0, 0])
