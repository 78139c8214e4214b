"""mjbots' own Python package and its `moteus_tool` as clients of emulated drives, over real connections.

The time for which the tool sleeps passes at once.
"""

import asyncio
import json
import math
import struct
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import can
import moteus as mjbots
import pytest
from moteus import moteus_tool, transport_factory
from moteus.fdcanusb_device import _append_checksum, _compute_crc8, _strip_and_validate_checksum
from moteus.moteus_tool import Runner
from moteus.moteus_tool import Stream as ToolStream

from cosim.core.units import TURN
from cosim.plugins.drivers.common.windings import MAGNET_ANGLE
from cosim.plugins.drivers.moteus import cycle
from cosim.plugins.drivers.moteus.codec import (
    INT8,
    INT16,
    INT32,
    Reply,
    ServoFeedback,
    Write,
    command_tail,
    decode,
    encode_feedback,
)
from cosim.plugins.drivers.moteus.fdcanusb import checksum, with_checksum, without_checksum
from cosim.plugins.drivers.moteus.registers import TORQUE_FACTOR, Mode, to_raw, to_value
from tests.kit.cycles import data_of, numbers_in

from .served import Served

R: Any = mjbots.Register
NODES = (1, 12)
PATIENCE = 60.0  # s, for a machine that stalls
LONG = 1e3  # s, a watchdog that does not matter
RESISTANCE, INDUCTANCE, TORQUE_CONSTANT = 0.3, 3e-4, 0.08
MOTOR = {"resistance": RESISTANCE, "inductance": INDUCTANCE, "torque_constant": TORQUE_CONSTANT}
MOTOR |= {"type": "dc_motor", "rotor_inertia": 1e-4, "viscous": 2e-4}


class Bench(Served):
    """Emulated drives, and what talks to them."""

    def __init__(self, folder: Path, serial: bool, sealed: bool = True, actuator: dict | None = None) -> None:
        """sealed: whether lines on the serial port have checksums; actuator: of the one drive that there is then."""
        self.serial, self.sealed = serial, sealed
        self.port, self.channel = str(folder / "fdcanusb"), uuid.uuid4().hex
        bus = {"interface": "virtual", "channel": self.channel, "fd": True}
        driver = {"type": "moteus", **({"port": {"port": self.port}} if serial else {"bus": bus})}
        if actuator is None:
            super().__init__(folder, driver, [{"id": node} for node in NODES], inertia=1e-2)
        else:
            super().__init__(folder, driver, [{"id": 1}], inertia=1e-4, actuator=actuator)
        self.servos = self.drives.servos

    def transport(self) -> mjbots.Transport:
        if not self.serial:
            return mjbots.Transport(mjbots.PythonCanDevice(interface="virtual", channel=self.channel))
        device = mjbots.FdcanusbDevice(self.port, command_timeout=PATIENCE, response_timeout=PATIENCE)
        device._checksum_active = self.sealed
        return mjbots.Transport(device)

    def talk(self, conversation: Callable[[mjbots.Transport], Awaitable[Any]]) -> None:
        """Run a conversation with the drives."""

        async def whole() -> None:
            line = self.transport()
            try:
                await asyncio.wait_for(conversation(line), PATIENCE)
            finally:
                line.close()
                await asyncio.sleep(0)

        asyncio.run(whole())


@pytest.fixture(autouse=True)
def closing_takes_no_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(can, "Notifier", partial(can.Notifier, timeout=0.01))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Bench(tmp_path, serial=False) as made:
        yield made


@pytest.fixture(params=["can", "serial", "serial without checksums"])
def any_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with Bench(tmp_path, request.param != "can", request.param == "serial") as made:
        yield made


def controllers(line: mjbots.Transport) -> list[Any]:
    return [mjbots.Controller(id=node, transport=line) for node in NODES]


async def reach(controller: Any, mode: int, enough: Callable[[Any], bool] = lambda values: True, **command: Any) -> Any:
    """The values once the drive is in this mode and they are enough; commands position mode until then, if any."""
    for _ in range(3000):
        result = await (controller.set_position(query=True, **command) if command else controller.query())
        if result.values[R.MODE] == mode and enough(result.values):
            return result.values
    raise AssertionError(f"mode {mode} is not reached: {result}")


def test_a_session(any_bench: Bench) -> None:
    async def conversation(line: mjbots.Transport) -> None:
        first, second = controllers(line)
        result = await first.set_stop(query=True)
        assert result.id == 1 and result.values[R.MODE] == mjbots.Mode.STOPPED
        assert result.values[R.POSITION] == pytest.approx(0.0, abs=1e-3)
        assert (result.values[R.VOLTAGE], result.values[R.TEMPERATURE], result.values[R.FAULT]) == (24.0, 25.0, 0)
        # to a position along a trajectory
        goal: dict[str, Any] = {"position": 0.25, "velocity": 0.0, "velocity_limit": 2.0, "accel_limit": 20.0}
        near = lambda values: abs(values[R.POSITION] - 0.25) < 0.05  # noqa: E731
        await reach(first, mjbots.Mode.POSITION, near, watchdog_timeout=LONG, **goal)
        # a torque, on the other drive
        torque: dict[str, Any] = {"kp_scale": 0.0, "kd_scale": 0.0, "ilimit_scale": 0.0, "feedforward_torque": 0.2}
        torque |= {"position": math.nan, "watchdog_timeout": LONG}
        values = await reach(second, mjbots.Mode.POSITION, lambda values: values[R.VELOCITY] > 0.5, **torque)
        assert values[R.TORQUE] == pytest.approx(0.2) and any_bench.motors[1].velocity > 3.0
        await second.set_brake()
        await reach(second, mjbots.Mode.BRAKE)
        # both at once
        results = await line.cycle([c.make_stop(query=True) for c in (first, second)])
        assert [r.id for r in results] == list(NODES)
        results = await line.cycle([c.make_query() for c in (first, second)])
        assert [r.values[R.MODE] for r in results] == [0, 0] and all(m.requested == 0.0 for m in any_bench.motors)

    any_bench.talk(conversation)


def test_watchdog_fault_and_clearing(bench: Bench) -> None:
    async def conversation(line: mjbots.Transport) -> None:
        drive = controllers(line)[0]
        here: dict[str, Any] = {"position": math.nan, "watchdog_timeout": 0.1}
        await reach(drive, mjbots.Mode.POSITION, **here)
        await reach(drive, mjbots.Mode.TIMEOUT)
        with pytest.raises(mjbots.FaultError, match=r"^Fault mode=11 code=0$"):
            await mjbots.move_to(drive, position=1.0)
        await drive.set_stop()
        here["watchdog_timeout"] = LONG
        await reach(drive, mjbots.Mode.POSITION, **here)
        bench.motors[0].fault_cause = "overtemperature"
        values = await reach(drive, mjbots.Mode.FAULT, **here)
        assert values[R.FAULT] == 38
        bench.motors[0].fault_cause = ""
        for _ in range(20):
            values = await reach(drive, mjbots.Mode.FAULT, **here)
        await drive.set_stop()
        assert (await drive.query()).values[R.FAULT] == 0

    bench.talk(conversation)


WIDE = ("mode", "position", "velocity", "torque", "q_current", "voltage", "temperature", "fault")
NARROW = (*WIDE, "d_current", "abs_position", "power", "motor_temperature", "trajectory_complete", "home_state")


def test_queries_of_every_kind(bench: Bench) -> None:
    bench.motors[0].jump, bench.motors[0].temperature = -0.75 * TURN, 41.0
    bench.run(0.001)

    async def conversation(line: mjbots.Transport) -> None:
        for resolution in (mjbots.INT16, mjbots.INT32, mjbots.F32):
            wanted = mjbots.QueryResolution()
            if resolution != mjbots.INT16:  # else the answer does not fit into a frame
                for name in set(NARROW) - set(WIDE):
                    setattr(wanted, name, mjbots.IGNORE)
            for name in NARROW if resolution == mjbots.INT16 else WIDE:
                setattr(wanted, name, mjbots.INT16 if resolution != mjbots.INT16 and name[0] in "mt" else resolution)
            drive: Any = mjbots.Controller(id=1, query_resolution=wanted, transport=line)
            values = (await drive.query()).values
            assert values[R.POSITION] == pytest.approx(-0.75, abs=1e-4) and values[R.VOLTAGE] == pytest.approx(24.0)
            assert values[R.TEMPERATURE] == pytest.approx(41.0, abs=0.1)
        first, second = controllers(line)
        floats = dict.fromkeys((R.CONTROL_POSITION, R.CONTROL_VELOCITY), mjbots.F32)
        whole = {R.ENCODER_VALIDITY: mjbots.INT8, R.MILLISECOND_COUNTER: mjbots.INT32}
        values = (await first.custom_query(floats | whole | {R.ENCODER_0_POSITION: mjbots.INT16})).values
        assert math.isnan(values[R.CONTROL_POSITION]) and values[R.ENCODER_VALIDITY] == 3
        assert values[R.ENCODER_0_POSITION] == pytest.approx(0.25, abs=1e-4)
        identity = (R.MODEL_NUMBER, R.FIRMWARE_VERSION, R.REGISTER_MAP_VERSION)
        values = (await second.custom_query(dict.fromkeys(identity, mjbots.INT32))).values
        assert list(values.values()) == [0, 0x010100, 5]

    bench.talk(conversation)


def test_outputs_and_positions_set(bench: Bench) -> None:
    async def conversation(line: mjbots.Transport) -> None:
        drive = controllers(line)[1]
        await drive.set_output_exact(position=2.25)
        assert (await drive.query()).values[R.POSITION] == pytest.approx(2.25)
        await drive.set_output_nearest(position=-0.9)
        assert (await drive.query()).values[R.POSITION] == pytest.approx(-0.75)
        await drive.set_require_reindex()
        assert (await drive.custom_query({R.HOME_STATE: mjbots.INT8})).values[R.HOME_STATE] == 0
        await drive.set_write_gpio(aux1=2, aux2=4)
        outputs = (R.AUX1_GPIO_COMMAND, R.AUX2_GPIO_COMMAND)
        values = (await drive.custom_query(dict.fromkeys(outputs, mjbots.INT8))).values
        assert values == dict(zip(outputs, (2, 4), strict=True))
        assert await drive.read_gpio() == b"\x00\x00"
        await drive.set_stay_within(lower_bound=-1.0, upper_bound=1.0, watchdog_timeout=math.nan)
        await reach(drive, mjbots.Mode.STAY_WITHIN)
        await drive.set_zero_velocity(kd_scale=2.0)
        await reach(drive, mjbots.Mode.ZERO_VELOCITY)
        await drive.set_current(d_A=0.0, q_A=1.5)
        await reach(drive, mjbots.Mode.CURRENT, lambda values: abs(values[R.TORQUE] - 0.15) < 1e-6)
        await drive.set_stop()

    bench.talk(conversation)


def test_the_diagnostic_stream(any_bench: Bench) -> None:
    async def conversation(line: mjbots.Transport) -> None:
        first, second = controllers(line)
        stream = mjbots.Stream(first)
        await stream.command(b"tel stop")
        assert float(await stream.command(b"conf get servo.pid_position.kp", allow_any_response=True)) == 4.0
        await stream.command(b"conf set servo.pid_position.kp 2.5")
        assert any_bench.servos[0].config["servo.pid_position.kp"] == 2.5
        with pytest.raises(mjbots.CommandError, match="ERR error setting"):
            await stream.command(b"conf set servo.nothing 1")
        listed = await stream.command(b"conf enumerate")
        assert b"servo.default_timeout_s 0.100000" in listed and len(listed.splitlines()) > 30
        stats = await stream.read_data("servo_stats")
        assert stats.mode == 0 and stats.bus_V == 24.0
        await stream.command(b"d pos nan 0 nan")
        await reach(first, mjbots.Mode.POSITION)
        assert (await stream.read_data("servo_stats")).mode == 10
        await stream.command(b"d stop")
        plain = mjbots.Stream(second, use_flow_control=False)
        assert await plain.command(b"conf get id.id", allow_any_response=True) == b"12"
        assert b"uuid.uuid.15 12" in await plain.command(b"conf enumerate")

    any_bench.talk(conversation)


def test_telemetry_at_a_rate(bench: Bench) -> None:
    """As mjbots' tview has it: by `tel rate`, until `tel stop`."""

    async def conversation(line: mjbots.Transport) -> None:
        first, second = controllers(line)
        stream = mjbots.Stream(first)
        await stream.command(b"tel stop")
        await stream.command(b"tel fmt motor_position 0")
        await stream.command(b"tel rate motor_position 5")
        for _ in range(3):
            assert await stream.readline() == b"emit motor_position"
            assert len(await stream.read_binary_blob()) == 11
        await stream.write_message(b"tel stop")
        await first.query()  # which is answered after that
        assert not bench.servos[0].rates
        with pytest.raises(mjbots.CommandError, match="ERR unknown name"):
            await mjbots.Stream(second).command(b"tel rate nothing 5")

    bench.talk(conversation)


@pytest.mark.real_time  # as the package waits for answers as long as a drive needs
def test_drives_are_discovered_and_reached_by_uuid(any_bench: Bench) -> None:
    async def conversation(line: mjbots.Transport) -> None:
        found = await line.discover(timeout=0.1)
        known = [(node, servo.uuid) for node, servo in zip(NODES, any_bench.servos, strict=True)]
        assert [(device.can_id, device.uuid) for device in found] == known
        address: Any = mjbots.DeviceAddress(uuid=any_bench.servos[1].uuid)
        drive: Any = mjbots.Controller(id=address, transport=line)
        assert (await drive.set_brake(query=True)).id == 12
        await reach(controllers(line)[1], mjbots.Mode.BRAKE)
        assert [servo.mode for servo in any_bench.servos] == [0, 15]

    any_bench.talk(conversation)


# --- moteus_tool --------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("options", "position"), [(["--zero-offset"], 0.0), (["--set-offset", "2.25"], 2.25)])
def test_the_tool_sets_the_zero_of_the_output(bench: Bench, options: list[str], position: float) -> None:
    servo = bench.servos[1]
    bench.motors[1].jump = 0.3 * TURN
    bench.run(0.001)
    arguments = tool_arguments(*options)

    async def conversation(line: mjbots.Transport) -> None:
        runner = Runner(arguments)
        runner.transport = line
        await runner.run_action(NODES[1])
        assert (await controllers(line)[1].query()).values[R.POSITION] == pytest.approx(position, abs=1e-5)

    bench.talk(conversation)
    assert bench.servos[0].saved["motor_position.output.offset"] == 0.0
    servo.reset(bench.t_ns)  # the offset was saved
    away = servo.encoder + servo.offset - position
    assert away == pytest.approx(round(away), abs=1e-5)


@pytest.mark.real_time
@pytest.mark.parametrize("serial", [False, True], ids=["can", "serial"])
def test_the_tool_from_the_command_line(serial: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def run(*options: str) -> list[str]:
        """The lines that it prints."""
        bus = ["pythoncan", "--can-iface", "virtual", "--can-chan", bench.channel]
        line = ["fdcanusb", "--fdcanusb", bench.port] if serial else bus
        monkeypatch.setattr(transport_factory, "GLOBAL_TRANSPORT", None)
        monkeypatch.setattr("sys.argv", ["moteus_tool", "--force-transport", *line, *options])

        async def whole() -> None:
            try:
                await asyncio.wait_for(moteus_tool.async_main(), PATIENCE)
            finally:
                transport_factory.GLOBAL_TRANSPORT.close()
                await asyncio.sleep(0)

        asyncio.run(whole())
        return capsys.readouterr().out.splitlines()

    with Bench(tmp_path, serial) as bench:
        info = run("--info")  # of all drives that it finds
        found = [uuid.UUID(line.split('"')[3]).bytes for line in info if '"uuid"' in line]
        assert found == [servo.uuid for servo in bench.servos]
        assert "id.id 12" in run("-t", "12", "--dump-config")
        changes, before = tmp_path / "changes.cfg", bench.servos[0].config["servo.max_current_A"]
        changes.write_text("conf set servo.max_current_A 3.5\n")
        run("-t", "12", "--write-config", str(changes))
        assert [servo.config["servo.max_current_A"] for servo in bench.servos] == [before, 3.5]
        assert '"bus_V": 24.0' in "".join(run("-t", "1", "--read", "servo_stats"))
        assert bench.drives.unknown.count == 0


@pytest.fixture
def calibrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    """Run something of the tool with these options, in the time of the drive; gives the drive."""
    monkeypatch.setenv("MOTEUS_CAL_DIR", str(tmp_path))

    def run(motor: dict, action: Callable[[Runner], Awaitable[Any]], *options: str, serial: bool = False) -> Bench:
        arguments = tool_arguments("--calibrate", *options)
        bench = Bench(tmp_path, serial, False, motor)

        async def sleep(seconds: float) -> None:
            bench.run(seconds)

        async def wait_for(awaited: Awaitable[Any], timeout: float) -> Any:
            return await asyncio.wait_for(awaited, PATIENCE)  # a loaded machine may take longer than the tool's 0.25 s

        clocked = vars(asyncio) | {"sleep": sleep}
        monkeypatch.setattr(sys.modules[mjbots.Stream.__module__], "asyncio", SimpleNamespace(**clocked))
        monkeypatch.setattr(moteus_tool, "asyncio", SimpleNamespace(**clocked | {"wait_for": wait_for}))
        monkeypatch.setattr(moteus_tool, "time", SimpleNamespace(time=lambda: bench.t_ns * 1e-9))

        async def conversation(line: mjbots.Transport) -> None:
            runner = Runner(arguments)
            runner.transport = line
            await action(runner)

        with bench:
            bench.talk(conversation)
        return bench

    yield run


async def calibrate(runner: Runner) -> None:
    await runner.run_action(1)


def assert_commutation(bench: Bench, config: dict[str, float]) -> None:
    """Field and magnet are parallel over the turn, and the motor is off."""
    away = [math.remainder(config[f"motor.offset.{k}"] - MAGNET_ANGLE, math.tau) for k in range(64)]
    assert max(map(abs, away)) < 0.1
    assert bench.servos[0].mode == Mode.STOPPED and bench.motors[0].requested == 0.0


def test_the_tool_finds_the_motor_of_the_rig(calibrated: Callable[..., Bench], tmp_path: Path) -> None:
    bench = calibrated(MOTOR, calibrate, "--cal-ll-encoder-speed", "4", "--cal-ll-kv-voltage", "3")
    (path,) = tmp_path.glob("moteus-cal-*.log")
    found, saved = json.loads(path.read_text()), bench.servos[0].saved
    assert found["winding_resistance"] == pytest.approx(RESISTANCE / 1.5, rel=0.03)
    assert found["kv"] == pytest.approx(TORQUE_FACTOR / TORQUE_CONSTANT, rel=0.03)
    for name in ("inductance", "inductance_d", "inductance_q"):
        assert found[name] == pytest.approx(INDUCTANCE / 1.5, rel=0.05)
    assert found["calibration"]["poles"] == 14 and not found["calibration"]["phase_invert"]
    assert saved["motor.poles"] == 14 and saved["motor.Kv"] == pytest.approx(found["kv"], abs=1e-5)
    assert saved["motor.resistance_ohm"] == pytest.approx(found["winding_resistance"], abs=1e-5)
    assert_commutation(bench, saved)


def test_the_tool_finds_the_commutation_by_voltage(calibrated: Callable[..., Bench]) -> None:
    """As it does where the noise is large against the current; on a serial port."""

    async def conversation(runner: Runner) -> None:
        tool = ToolStream(runner.args, 1, runner.transport)
        tool.firmware = await tool.read_data("firmware")
        await tool.clear_motor_offsets()
        found: Any = await tool.calibrate_encoder_mapping(24.0, RESISTANCE / 1.5, 0.05, 1.0)
        assert found.poles == 14

    options = "--cal-ll-encoder-speed", "4", "--cal-never-encoder-current-mode"
    bench = calibrated(MOTOR, conversation, *options, serial=True)
    assert_commutation(bench, bench.servos[0].config)


def test_a_motor_without_windings_is_refused(calibrated: Callable[..., Bench]) -> None:
    with pytest.raises(mjbots.CommandError, match=r"^Error response:ERR motor not configured$"):
        calibrated({"type": "ideal"}, calibrate)


# --- the codec of moteus drives against the package's ---


def test_the_same_command_in_both_codecs() -> None:
    """Our frame is what the mjbots's package makes of the same command, register by register."""
    transmission = cycle.transmission("effort", command_tail(0.075, integral=False), [0x8001])
    (data,) = data_of(transmission, 0.3 / TURN, -1.2 / TURN, 0.5, 0.25, 0.125, 1.75)
    ours = mjbots.parse_registers(data)
    assert ours.command == pytest.approx(
        {
            R.MODE: 10,
            R.COMMAND_POSITION: 0.3 / TURN,
            R.COMMAND_VELOCITY: -1.2 / TURN,
            R.COMMAND_FEEDFORWARD_TORQUE: 0.5,
            R.COMMAND_KP_SCALE: 0.25,
            R.COMMAND_KD_SCALE: 0.125,
            R.COMMAND_POSITION_MAX_TORQUE: 1.75,
            R.COMMAND_TIMEOUT: 0.075,
            R.COMMAND_VELOCITY_LIMIT: -0.00025,
            R.COMMAND_ACCEL_LIMIT: -0.001,
            R.COMMAND_ILIMIT_SCALE: 0.0,
        },
        rel=1e-6,
    )
    assert [register for register, _ in ours.query] == [0x00, 0x01, 0x02, 0x03, 0x0D, 0x0E, 0x0F] and not ours.errors


def test_the_same_feedback_in_both_codecs() -> None:
    data = encode_feedback(ServoFeedback(10, 0.3, -1.2, 0.5, 23.5, 31.0, 0))
    values = mjbots.parse_registers(data).response
    back = numbers_in(cycle.reception([0x100]), data)
    assert back is not None
    back[cycle.HALF_VOLTS] *= 0.5
    assert [values[r] for r in (0, 1, 2, 3, 13, 14, 15)] == pytest.approx(back)


def test_every_register_means_the_same() -> None:
    for register in R:
        for resolution, raw in ((INT8, 100), (INT8, -128), (INT16, -3210), (INT16, -32768), (INT32, 123456)):
            if register in UNKNOWN_TO_THE_PACKAGE:
                continue
            ours = to_value(register, resolution, raw)
            assert ours == pytest.approx(mjbots.scale_register(register, resolution, raw), nan_ok=True), register
            if math.isfinite(ours):
                assert to_raw(register, resolution, ours) in (raw, raw - 1, raw + 1)


# the package reads them as whole numbers, but the firmware and the register reference scale them
UNKNOWN_TO_THE_PACKAGE = (
    *range(0x010, 0x01F),
    *(R.COMMAND_FIXED_CURRENT_OVERRIDE, R.SET_OUTPUT_NEAREST, R.SET_OUTPUT_EXACT),
)


def test_commands_of_the_manufacturer_decode() -> None:
    drive = mjbots.Controller(id=1)
    frame = drive.make_position(position=1.0, velocity=2.0, watchdog_timeout=0.25, query=True).data
    found, whole = decode(frame)
    assert whole and found[:3] == [Write(0, INT8, (10,)), Write(0x020, 3, (1.0, 2.0)), Write(0x027, 3, (0.25,))]
    assert mjbots.parse_registers(struct.pack("<BBhBB", 0x25, 0x01, 2500, 0x50, 0x50)).response == {1: 0.25}
    assert decode(struct.pack("<BBhBB", 0x25, 0x01, 2500, 0x50, 0x50)) == ([Reply(1, INT16, (2500,))], True)


def test_the_same_checksums() -> None:
    for line in (b"", b"OK", b"ERR checksum", b"can send 8001 01000A BF", bytes(range(32, 127))):
        assert checksum(line) == _compute_crc8(line) and with_checksum(line) == _append_checksum(line)
        theirs, had, right = _strip_and_validate_checksum(with_checksum(line))
        assert had and right and without_checksum(with_checksum(line)) == (theirs, True)
