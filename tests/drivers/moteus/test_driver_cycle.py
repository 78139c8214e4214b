"""The cycle of the driver of moteus drives, stopping, parameters."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cosim.drivers import moteus
from cosim.drivers.moteus import faults
from cosim.drivers.moteus.codec import BRAKE, QUERY, STOP, ServoFeedback, encode_feedback
from cosim.drivers.transport import CanFrame, CanParams, ConnectionLost, SerialParams
from cosim.errors import InputError, RunError
from cosim.units import TURN
from tests.drivers.moteus.driver_bench import Bench
from tests.kit.clock import MS


def test_an_answer_that_is_late_keeps_the_old_values(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.1)
    old, seen = bench.state.position.copy(), bench.state.t_ns
    bench.cable.deaf.add(8)
    bench.cycle(3)
    assert bench.state.t_ns == seen and bench.state.position[1] == old[1] and bench.state.position[0] != old[0]
    bench.cable.deaf.clear()


def test_reading_never_waits_past_the_deadline(bench: Bench) -> None:
    bench.cable.deaf.update((3, 8))
    bench.driver.read(bench.state, bench.cable.t_ns + 3 * MS)
    end = bench.cable.t_ns
    bench.driver.read(bench.state, end - MS)
    assert bench.cable.t_ns == end


def test_without_feedback_there_is_no_time(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.cable.deaf.add(8)
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.state.t_ns == 0


def test_frames_that_do_not_decode_are_counted(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cable.spoil = lambda frame: frame._replace(data=b"\xff" + frame.data[1:])
    bench.cycle(3)
    assert bench.driver.lost == 6


def test_frames_of_other_nodes_are_ignored(bench: Bench) -> None:
    bench.cable.answers.append(CanFrame(0x0904, b"\x50" * 64, True, True))
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.driver.lost == 0


def test_a_drive_that_lost_its_power_is_not_switched_on_again(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(5, effort=0.1)
    bench.servos[1].reset(bench.cable.t_ns)
    bench.cycle(50)
    assert bench.state.fault.tolist() == [0, faults.STOPPED] and bench.servos[1].mode == 0
    assert bench.rotors[1].effort == 0.0 and bench.rotors[0].effort == pytest.approx(0.1)


def test_a_fault_stays_what_it_was(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.rotors[0].fault_cause = "encoder"
    bench.cycle(3)
    assert bench.state.fault[0] == 35
    bench.servos[0].mode = bench.servos[0].fault = 0  # another master stopped it
    bench.cycle(3)
    assert bench.state.fault[0] == 35


def test_a_new_request_discards_late_answers(bench: Bench) -> None:
    bench.driver.read(bench.state, bench.cable.t_ns)
    bench.cable.answers.extend(
        CanFrame(id, encode_feedback(ServoFeedback(0, 9.0, 0, 0, 24, 25, 0))) for id in (0x300, 0x800)
    )
    bench.driver.read(bench.state, bench.cable.t_ns)
    assert bench.state.position.tolist() == [0.0, 0.0]


def test_another_master_is_noticed(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(2)
    bench.servos[0].mode = 15
    bench.servos[0].command["mode"] = 15
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.state.fault[0] == faults.OTHER_MODE
    assert "check for another master" in bench.driver.describe_fault(0, faults.OTHER_MODE)


def test_a_reported_limit_is_not_a_fault(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(3, effort=1.9)  # the drive holds it at 1.5 N·m
    assert bench.servos[0].fault == 102 and bench.state.fault.tolist() == [0, 0]


def test_old_and_infinite_commands_are_not_sent(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cable.sent.clear()
    bench.command.valid_until_ns = bench.cable.t_ns - 1
    with pytest.raises(
        RunError, match=r"^the command of j0, j1 has expired and was not sent; the program is too late$"
    ):
        bench.driver.write(bench.command, bench.cable.t_ns + MS)
    for value in (math.nan, math.inf, 1e39):
        bench.command.valid_until_ns, bench.command.effort[1] = bench.cable.t_ns, value
        with pytest.raises(
            RunError, match=r"^the command of joint 'j1' is not finite and was not sent; check the controller$"
        ):
            bench.driver.write(bench.command, bench.cable.t_ns + MS)
    assert bench.cable.sent == []


def test_a_watchdog_that_is_not_longer_than_the_period(make: Callable[..., Bench]) -> None:
    params = moteus.Params(bus=CanParams("virtual", "x", fd=True), watchdog=0.001)
    with pytest.raises(InputError) as caught:
        moteus.load(params, make(1).context)
    assert str(caught.value) == "rig.yaml:7 watchdog: must be longer than the period of 0.001 s, is 0.001 s"


def test_the_watchdog_of_the_drive_is_that_of_the_parameters(make: Callable[..., Bench]) -> None:
    bench = make(1, watchdog=0.025)
    bench.driver.open()
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.2)
    bench.cable.run(20 * MS)
    assert bench.servos[0].mode == 10
    bench.cable.run(10 * MS)
    assert bench.servos[0].mode == 11 and bench.rotors[0].effort == 0.0


@pytest.mark.parametrize("gains", [0.5, 1.0, 4.0])
def test_a_drive_whose_watchdog_trips_damps_also_with_gains_above_its_own(
    make: Callable[..., Bench], gains: float
) -> None:
    """The firmware's mode of the trip, zero velocity, has the kd scale of the last command."""
    bench = make(1, watchdog=0.05)
    bench.driver.open()
    bench.driver.enable("effort")
    own = bench.servos[0].config["servo.pid_position.kd"] / TURN
    rotor = bench.rotors[0]
    for _ in range(300):
        bench.cycle(velocity=10.0, position=rotor.position, kp=0.01, kd=gains * own)
    fast = rotor.velocity
    assert fast > 3.0
    bench.cable.run(51 * MS)
    assert bench.servos[0].mode == 11
    bench.cable.run(MS)
    assert rotor.effort == pytest.approx(-min(gains, 1.0) * own * rotor.velocity, rel=0.02)
    bench.cable.run(1000 * MS)
    assert 0.0 <= rotor.velocity < 0.05 * fast


@pytest.mark.parametrize("mode", ["velocity", "position"])
def test_a_drive_whose_watchdog_trips_damps_in_its_own_loops(make: Callable[..., Bench], mode: str) -> None:
    bench = make(1, watchdog=0.05)
    bench.driver.open()
    bench.driver.enable(mode)
    for _ in range(300):
        bench.cycle(velocity=5.0, position=5.0 * bench.cable.t_ns * 1e-9)
    fast = bench.rotors[0].velocity
    bench.cable.run(1050 * MS)
    assert fast > 3.0 and abs(bench.rotors[0].velocity) < 0.05 * fast


def test_stopping_never_raises_and_does_not_wait(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.1)
    began = bench.cable.t_ns
    bench.cable.sent.clear()
    bench.driver.stop()
    bench.driver.stop()
    assert [(frame.id, frame.data) for frame in bench.cable.sent] == [(3, STOP), (8, STOP)] * 2
    assert bench.cable.t_ns == began and [r.effort for r in bench.rotors] == [0.0, 0.0]
    bench.cable.cut = True
    bench.driver.stop()
    with pytest.raises(ConnectionLost):
        bench.driver.read(bench.state, bench.cable.t_ns + MS)
    bench.cable.cut = False


@pytest.fixture
def braking(make: Callable[..., Bench]) -> Bench:
    made = make(brake=True)
    made.driver.open()
    return made


def test_dynamic_braking_lasts_until_the_next_enable_also_after_close(braking: Bench) -> None:
    driver, rotor = braking.driver, braking.rotors[0]
    assert [servo.mode for servo in braking.servos] == [0, 0], "what is off when it is met is not switched on"
    driver.enable("effort")
    braking.cycle(200, effort=(0.1, 0.0))
    fast = rotor.velocity
    assert fast > 5.0
    braking.cable.sent.clear()
    began = braking.cable.t_ns
    driver.stop()
    driver.stop()
    assert [(frame.id, frame.data) for frame in braking.cable.sent] == [(3, BRAKE), (8, BRAKE)] * 2
    assert braking.cable.t_ns == began
    efforts = []
    for _ in range(200):
        braking.cable.run(MS)
        efforts.append(rotor.effort)
        assert rotor.effort * rotor.velocity <= 0.0
    assert [servo.mode for servo in braking.servos] == [15, 15]
    assert min(efforts) >= -1.01 * 0.1**2 / 0.1 * fast and np.diff(efforts).min() > -1e-9, "strongest at first"
    assert abs(rotor.velocity) < 1e-3 * fast
    braking.cable.run(500 * MS)  # no watchdog: it needs no commands
    driver.read(braking.state, braking.cable.t_ns + MS)
    assert braking.state.fault.tolist() == [0, 0] and [servo.mode for servo in braking.servos] == [15, 15]
    with pytest.raises(RunError, match="are off; enable the driver first"):
        braking.cycle()
    driver.close()
    assert not braking.cable.is_open
    rotor.velocity = 1.0
    braking.cable.run(MS)
    assert [servo.mode for servo in braking.servos] == [15, 15] and rotor.effort < 0.0
    braking.cable.sent.clear()
    driver.open()
    driver.enable("effort")
    braking.cycle(3)
    assert STOP not in [frame.data for frame in braking.cable.sent], "it does not coast on the way"
    assert [servo.mode for servo in braking.servos] == [10, 10]


def test_a_drive_that_was_off_brakes_too_when_stopped(braking: Bench) -> None:
    braking.driver.stop()
    braking.cable.run(20 * MS)
    assert [servo.mode for servo in braking.servos] == [15, 15]


def test_braking_clears_neither_a_fault_nor_a_tripped_watchdog(braking: Bench) -> None:
    driver, rotors = braking.driver, braking.rotors
    driver.enable("effort")
    rotors[1].fault_cause = "overcurrent"
    braking.cycle(3)
    rotors[1].fault_cause = ""
    driver.stop()
    braking.cable.run(20 * MS)
    assert [servo.mode for servo in braking.servos] == [15, 1] and rotors[1].effort == 0.0
    with pytest.raises(RunError, match=r"^joint 'j1': fault: motor driver fault \(drive error 33\); check the supply"):
        driver.enable("effort")
    assert driver.latched
    sound = [frame.id for frame in braking.cable.sent if frame.data == STOP]
    driver.clear()
    braking.cable.run(20 * MS)
    assert [servo.mode for servo in braking.servos] == [15, 15]
    assert sound == [] and {frame.id for frame in braking.cable.sent if frame.data == STOP} == {0x8008}
    driver.enable("effort")
    braking.cycle(3)
    braking.cable.run(120 * MS)  # without commands
    driver.stop()
    driver.read(braking.state, braking.cable.t_ns + MS)
    assert [servo.mode for servo in braking.servos] == [11, 11] and braking.state.fault.tolist() == [-1, -1]
    driver.close()
    driver.open()
    with pytest.raises(RunError, match="the drive's watchdog tripped"):
        driver.enable("effort")
    driver.clear()
    driver.enable("effort")
    braking.cycle(3)
    assert braking.state.fault.tolist() == [0, 0]


def test_firmware_that_may_lack_braking(make: Callable[..., Bench]) -> None:
    for brake in (False, True):
        bench = make(1, brake=brake)
        bench.servos[0].mode = 10
        bench.cable.spoil = lambda frame: frame._replace(data=frame.data.replace(b"\x82\x02\x05", b"\x82\x02\x04"))
        if not brake:
            bench.driver.open()
            continue
        with pytest.raises(InputError) as caught:
            bench.driver.open()
        assert str(caught.value) == (
            "rig.yaml:7 stop: node 3 has register map 4, whose firmware may lack mode 15 (brake); update it, or give"
            " 'stop: off'"
        )
        assert not bench.cable.is_open and bench.servos[0].mode == 0


def test_no_command_follows_a_stop(bench: Bench) -> None:
    """A stop that comes between the commands to two drives, as of a signal, keeps the rest of them back."""
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.1)
    send = bench.cable.send

    def stopping(item: CanFrame, deadline_ns: int) -> None:
        send(item, deadline_ns)
        bench.cable.send = send  # type: ignore[method-assign]
        bench.driver.stop()

    bench.cable.send = stopping  # type: ignore[method-assign]
    with pytest.raises(RunError, match=r"^the motors of j0, j1 were stopped; enable the driver first$"):
        bench.cycle()
    bench.cable.run(20 * MS)
    assert [servo.mode for servo in bench.servos] == [0, 0]


def test_a_flood_of_frames_blocks_nothing(bench: Bench) -> None:
    bench.cable.deaf.add(8)
    bench.cable.answers.extend([CanFrame(0x0905, b"", True)] * 1000)
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert len(bench.cable.answers) > 100
    bench.cable.answers.clear()
    bench.cable.deaf.clear()


def test_exactly_one_connection() -> None:
    bus, port = CanParams("virtual", "x", fd=True), SerialParams("/dev/null")
    for both in ({}, {"bus": bus, "port": port}):
        with pytest.raises(ValueError, match=r"^give either 'bus' or 'port'$"):
            moteus.Params(**both)
    with pytest.raises(ValueError, match=r"^moteus drives speak CAN FD; give 'fd: true' in 'bus'$"):
        moteus.Params(bus=CanParams("virtual", "x"))
    with pytest.raises(ValueError, match=r"^'checksum' is for a 'port'; leave it out$"):
        moteus.Params(bus=bus, checksum=True)
    assert (
        moteus.connection_name(moteus.Params(bus=bus)) == "virtual x"
        and moteus.connection_name(moteus.Params(port=port)) == "/dev/null"
    )
    assert moteus.JointParams(id=4).address == 4


@pytest.mark.parametrize("stop", ["off", "brake"])
def test_how_drives_stop_is_a_parameter(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, stop: Any) -> None:
    bench = make(1)
    monkeypatch.setattr(moteus, "host", lambda params, context: bench.cable)
    driver = moteus.load(moteus.Params(bus=CanParams("virtual", "x", fd=True), stop=stop), bench.context)
    driver.open()
    bench.cable.sent.clear()
    driver.close()
    assert [frame.data for frame in bench.cable.sent] == [BRAKE if stop == "brake" else STOP]


def test_traffic_of_a_cycle_is_what_a_cycle_sends(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cable.sent.clear()
    heard: list[CanFrame] = []
    bench.cable.spoil = lambda frame: heard.append(frame) or frame
    bench.cycle(1)
    estimate = moteus.traffic(moteus.Params(bus=CanParams("virtual", "x", fd=True)), bench.context)

    def shape(frames: Any) -> list[tuple[Any, ...]]:
        return [(f.id, len(f.data), f.extended, f.fd, f.switched) for f in frames]

    assert shape(estimate.out) == shape(bench.cable.sent) and shape(estimate.back) == shape(heard)
    assert QUERY not in [frame.data for frame in bench.cable.sent]
    lines = moteus.traffic(moteus.Params(port=SerialParams("/dev/null"), checksum=True), bench.context)
    assert [len(line) for line in lines.out] == [len("can send 8003  BF *00\r\n") + 96] * 2
