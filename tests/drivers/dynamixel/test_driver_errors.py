"""The driver of Dynamixel drives: stopping, lost and damaged packets, errors of the rig."""

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from cosim.drivers import dynamixel
from cosim.drivers.dynamixel import tables as t
from cosim.drivers.transport import ConnectionLost
from cosim.errors import InputError, RunError
from tests.drivers.dynamixel.driver_bench import Bench
from tests.kit.clock import MS


def test_stop_from_any_state(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.driver.stop()
    b.driver.close()
    b.start()
    b.run(5, effort=0.5)
    b.driver.stop()
    b.driver.stop()
    assert b.torques() == [False] * 3
    assert [rotor.effort for rotor in b.rotors] == [0, 0, 0]
    with pytest.raises(RunError, match=r"^the motors of j0, j1, j2 are off; enable the driver first$"):
        b.write()
    b.driver.enable("effort")
    b.driver.close()
    assert (b.torques(), b.is_open) == ([False] * 3, False)
    with pytest.raises(RunError, match=r"^the drives of j0, j1, j2 are not open; open the driver first$"):
        b.driver.enable("effort")


def test_a_stop_while_drives_are_switched_on_wins(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.driver.open()

    def stop(answers: list[bytes]) -> list[bytes]:
        if b.torques()[0] and not b.driver._stopped:
            b.driver.stop()
        return answers

    b.spoil = stop
    with pytest.raises(RunError, match=r"^the motors of j0, j1, j2 were stopped; enable the driver first$"):
        b.driver.enable("effort")
    assert b.torques() == [False] * 3


def test_a_drive_that_does_not_switch_on(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.driver.open()
    change = b.nodes[1].change
    b.nodes[1].change = lambda register, value: change(register, 0 if register == t.TORQUE_ENABLE else value)
    b.delay_ns = 5 * MS
    with pytest.raises(RunError, match=r"^joint 'j1': drive \d+ did not switch on within 1 s; check its supply$"):
        b.driver.enable("effort")
    assert b.torques() == [False] * 3


def test_commands_that_are_not_sent(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.sent.clear()
    with pytest.raises(RunError, match=r"^the command of joint 'j0', 'j1', 'j2' is not finite and was not sent"):
        b.write(effort=float("nan"))
    b.cmd.valid_until_ns = b.t_ns - 1
    with pytest.raises(RunError, match=r"^the command of j0, j1, j2 has expired and was not sent; the program"):
        b.driver.write(b.cmd, b.t_ns + MS)
    assert b.sent == []
    with pytest.raises(RunError, match=r"have no mode 'warp'; use one of effort, position, velocity$"):
        b.driver.enable("warp")


@pytest.mark.parametrize("fast", [True, False])
def test_the_last_values_of_a_silent_drive_are_kept(bench: Callable[..., Bench], fast: bool) -> None:
    b = bench(fast=fast).start()
    b.run(1)
    old = b.out.t_ns
    b.rotors[0].position, b.rotors[1].position = 0.5, 0.7
    b.emulator.nodes = b.nodes[:1] + b.nodes[2:]
    b.wait(b.t_ns + MS)
    state = b.read()
    assert state.position == pytest.approx([0.5, 0.0, 0.0], abs=1e-3)  # the blocks before it in the chain are valid
    assert state.t_ns == old


def test_a_read_ends_by_its_deadline_and_late_answers_are_discarded(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.run(1)
    old, b.delay_ns = b.out.t_ns, 5 * MS
    b.rotors[0].position = 1.0  # measured immediately, answered later
    b.wait(b.t_ns + MS)
    begin = b.t_ns
    b.read()
    assert (b.t_ns, b.out.t_ns) == (begin + MS, old)
    b.rotors[0].position, b.delay_ns = 0.2, 20_000
    b.wait(b.t_ns + MS)
    for _ in range(25):
        b.write()
        assert b.read().position[0] != pytest.approx(1.0, abs=0.1)
    assert b.out.position[0] == pytest.approx(0.2, abs=1e-3)


def test_with_a_deadline_in_the_past_nothing_is_requested(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.sent.clear()
    b.driver.read(b.out, b.t_ns)
    assert b.sent == []


def test_damaged_packets_are_counted_and_dropped(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.run(1)
    lost = b.driver.lost

    def flip(answers: list[bytes]) -> list[bytes]:
        return [answer[:20] + bytes((answer[20] ^ 1,)) + answer[21:] for answer in answers]

    b.spoil = flip
    old = b.out.t_ns
    b.write()
    assert b.read().t_ns == old
    assert b.driver.lost > lost
    b.spoil = lambda answers: [b"\xff\xff" + a[:30] for a in answers]
    b.write()
    b.read()
    b.spoil = lambda answers: [c for a in answers for c in (a[:7], a[7:8], a[8:])]
    assert b.run(30).t_ns > old
    assert b.out.fault.tolist() == [0, 0, 0]


def test_a_lost_connection_is_an_error_of_the_run(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.is_open = False
    with pytest.raises(ConnectionLost):
        b.write()
    b.driver.stop()
    b.driver.close()


def mistake(b: Bench) -> str:
    with pytest.raises(InputError) as error:
        b.driver.open()
    assert not b.is_open
    assert b.torques() == [False] * len(b.nodes)
    return str(error.value)


def test_no_drive_answers(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.emulator.nodes = b.nodes[:1]
    begin = b.t_ns
    place = "rig.yaml:5 joints.j1.id"
    assert mistake(b) == f"{place}: no answer from drive 2 on the line; check its power, the id and the bit rate"
    assert b.t_ns - begin < 1000 * MS


def test_another_model(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.nodes[0].put(t.MODEL_NUMBER, 1030)
    message = "drive 1 is XM430-W210, not XM430-W350; write 'model: XM430-W210'"
    assert mistake(b) == f"rig.yaml:5 joints.j0.model: {message}"
    known = "known: XM430-W350, XM430-W210, XM540-W270, XM540-W150, XL430-W250"
    for number in (29, 1200, 1220, 2000):  # MX-28; XL330-M288 and XC330-T288, with 1 mA per count; PH42
        b.nodes[0].put(t.MODEL_NUMBER, number)
        assert mistake(b) == f"rig.yaml:5 joints.j0.model: drive 1 is of model number {number}, not XM430-W350; {known}"


@pytest.mark.parametrize(
    ("register", "value", "options", "message"),
    [
        (
            t.FIRMWARE,
            37,
            {},
            "its firmware 37 has no bus watchdog; update it to 45 or later with the manufacturer's tool",
        ),
        (
            t.FIRMWARE,
            44,
            {"fast": True},
            "its firmware 44 has no fast sync read; update it to 45 or later with the manufacturer's tool",
        ),
        (
            t.RETURN_LEVEL,
            0,
            {},
            "status return level 0 (register 68) keeps it silent; write 2 with the manufacturer's tool",
        ),
        (
            t.RETURN_LEVEL,
            1,
            {},
            "status return level 1 (register 68) keeps it silent; write 2 with the manufacturer's tool",
        ),
        (
            t.RETURN_DELAY_TIME,
            250,
            {"return_delay": 1e-5},
            "return delay time 500 µs (register 9 = 250) is longer than 'return_delay' allows; "
            "write 5 or less with the manufacturer's tool",
        ),
        (
            t.DRIVE_MODE,
            9,
            {},
            "drive mode 9 (register 10) lets goals switch the torque on; write 1 with the manufacturer's tool",
        ),
        (
            t.DRIVE_MODE,
            2,
            {},
            "drive mode 2 (register 10) makes it the slave of another; write 0 with the manufacturer's tool",
        ),
        (
            t.CURRENT_LIMIT,
            500,
            {},
            "the effort limit is 4 N*m at drive 3, whose own limit is 2.39813 N*m (register 38); "
            "lower the joint's limit or raise the drive's",
        ),
        (
            t.VELOCITY_LIMIT,
            50,
            {},
            "the velocity limit is 2 rad/s at drive 3, whose own limit is 1.19904 rad/s (register 44); "
            "lower the joint's limit or raise the drive's",
        ),
    ],
)
def test_settings_that_do_not_fit(
    bench: Callable[..., Bench], register: t.Register, value: int, options: dict[str, Any], message: str
) -> None:
    b = bench(**options)
    for node in b.nodes:
        node.put(t.RETURN_DELAY_TIME, 0)
    b.nodes[2].put(register, value)
    assert mistake(b) == f"rig.yaml:5 joints.j2.id: {message if 'at drive 3' in message else f'drive 3: {message}'}"


def test_limits_that_are_not_set_are_the_drives(bench: Callable[..., Bench]) -> None:
    b = bench(mode="position", limits=(-np.inf, np.inf, np.inf, np.inf)).start()
    assert b.nodes[0].get(t.GOAL_CURRENT) == 1193


def test_a_watchdog_that_is_too_short(bench: Callable[..., Bench]) -> None:
    with pytest.raises(InputError) as error:
        bench(watchdog=0.03)
    what = "0.03 s is too short for drives that count in 20 ms; use at least 0.04 s"
    assert str(error.value) == f"rig.yaml:5 watchdog: {what}"


def test_a_model_without_current(bench: Callable[..., Bench]) -> None:
    with pytest.raises(InputError) as error:
        bench(wiring={"model": "XL430-W250"})
    what = "XL430-W250 has no current control; use mode velocity or position"
    assert str(error.value) == f"rig.yaml:5 joints.j0.model: {what}"
    b = bench(mode="position", wiring={"model": "XL430-W250"}).start()
    assert [node.mode for node in b.nodes] == [t.EXTENDED_MODE] * 3
    assert b.run(1500, position=0.4).position == pytest.approx([0.4] * 3, abs=4e-3)
    with pytest.raises(RunError, match=r"have no mode 'effort'; use one of position, velocity$"):
        b.driver.enable("effort")


def test_what_the_program_knows_of_the_family(bench: Callable[..., Bench]) -> None:
    b = bench()
    assert get_args(get_type_hints(dynamixel.JointParams)["model"]) == tuple(t.MODELS)
    assert frozenset({"effort", "velocity", "position"}) == dynamixel.MODES
    assert dynamixel.SerialSettings(port="/dev/ttyUSB0").baudrate == 57600
    assert dynamixel.connection_name(b.params) == "/dev/ttyX"
    assert b.context.wiring[2].address == 3
    assert dynamixel.host(b.params, b.context).name == "/dev/ttyX"
    assert dynamixel.load(b.params, b.context).modes == dynamixel.MODES
