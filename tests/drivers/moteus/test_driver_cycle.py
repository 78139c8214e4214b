"""The cycle of the driver of moteus drives, stopping and braking, parameters."""

import numpy as np
import pytest

from cosim.core.units import TURN
from cosim.plugins.drivers import moteus
from cosim.plugins.drivers.moteus import faults
from cosim.plugins.drivers.moteus.codec import BRAKE, QUERY, STOP, ServoFeedback, encode_feedback
from cosim.plugins.drivers.transport import CanFrame, CanParams, SerialParams
from tests.drivers.bench import refused
from tests.drivers.moteus.conftest import BUS


def test_frames_that_do_not_decode_are_counted_and_those_of_others_ignored(bench):
    bench.arrive([CanFrame(0x0904, b"\x50" * 64, True, True)])
    bench.read()
    assert bench.driver.lost == 0
    bench.driver.enable("effort")
    bench.spoil = lambda frame: (frame._replace(data=b"\xff" + frame.data[1:]),)
    bench.cycle(3)
    assert bench.driver.lost == 6


def test_a_flood_of_frames_blocks_nothing(bench):
    bench.deaf(8)
    bench.arrive([CanFrame(0x0905, b"", True)] * 1000)
    bench.read()
    assert len(bench.queue) > 100
    bench.queue.clear()


def test_a_drive_that_lost_its_power_is_not_switched_on_again(bench):
    bench.driver.enable("effort")
    bench.cycle(5, effort=0.1)
    bench.servos[1].reset(bench.t_ns)
    bench.cycle(50)
    assert bench.faults == [0, faults.STOPPED] and bench.servos[1].mode == 0
    assert bench.efforts == pytest.approx([0.1, 0.0])


def test_a_fault_stays_what_it_was(bench):
    bench.driver.enable("effort")
    bench.motors[0].fault_cause = "encoder"
    bench.cycle(3)
    assert bench.faults[0] == 35
    bench.servos[0].mode = bench.servos[0].fault = 0  # another master stopped it
    bench.cycle(3)
    assert bench.faults[0] == 35


def test_a_new_request_discards_late_answers(bench):
    bench.read(0)
    data = encode_feedback(ServoFeedback(0, 9.0, 0, 0, 24, 25, 0))
    bench.queue.clear()
    bench.arrive([CanFrame(id, data) for id in (0x300, 0x800)])
    assert bench.read(0).position.tolist() == [0.0, 0.0]


def test_another_master_is_noticed(bench):
    bench.driver.enable("effort")
    bench.cycle(2)
    bench.servos[0].mode = bench.servos[0].command["mode"] = 15
    assert bench.read().fault[0] == faults.OTHER_MODE
    assert "check for another master" in bench.driver.describe_fault(0, faults.OTHER_MODE)


def test_a_reported_limit_is_not_a_fault(bench):
    bench.driver.enable("effort")
    bench.cycle(3, effort=1.9)  # the drive holds it at 1.5 N·m
    assert bench.servos[0].fault == 102 and bench.faults == [0, 0]


def test_the_watchdog_of_the_drive_is_that_of_the_parameters(make):
    b = make(1, watchdog=0.025).start()
    b.cycle(2, effort=0.2)
    b.run(20)
    assert b.modes == [10]
    b.run(10)
    assert b.modes == [11] and b.efforts == [0.0]


@pytest.mark.parametrize("gains", [0.5, 1.0, 4.0])
def test_a_drive_whose_watchdog_trips_damps_also_with_gains_above_its_own(make, gains):
    """The firmware's mode of the trip, zero velocity, has the kd scale of the last command."""
    b = make(1, watchdog=0.05).start()
    own, motor = b.servos[0].config["servo.pid_position.kd"] / TURN, b.motors[0]
    for _ in range(300):
        b.cycle(velocity=10.0, position=motor.position, kp=0.01, kd=gains * own)
    fast = motor.velocity
    assert fast > 3.0
    b.run(51)
    assert b.modes == [11]
    b.run(1)
    assert motor.effort == pytest.approx(-min(gains, 1.0) * own * motor.velocity, rel=0.02)
    b.run(1000)
    assert 0.0 <= motor.velocity < 0.05 * fast


@pytest.mark.parametrize("mode", ["velocity", "position"])
def test_a_drive_whose_watchdog_trips_damps_in_its_own_loops(make, mode):
    b = make(1, watchdog=0.05).start(mode)
    for _ in range(300):
        b.cycle(velocity=5.0, position=5.0 * b.t_ns * 1e-9)
    fast = b.motors[0].velocity
    b.run(1050)
    assert fast > 3.0 and abs(b.motors[0].velocity) < 0.05 * fast


def test_stopping_never_raises_and_does_not_wait(bench):
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.1)
    began = bench.t_ns
    bench.sent.clear()
    bench.driver.stop()
    bench.driver.stop()
    assert [(frame.id, frame.data) for frame in bench.sent] == [(3, STOP), (8, STOP)] * 2
    assert bench.t_ns == began and bench.efforts == [0.0, 0.0]
    bench.broken = True
    bench.driver.stop()
    bench.broken = False


@pytest.fixture
def braking(make):
    made = make(stop="brake")
    made.driver.open()
    return made


def test_dynamic_braking_lasts_until_the_next_enable_also_after_close(braking):
    driver, motor = braking.driver, braking.motors[0]
    assert braking.modes == [0, 0], "what is off when it is met is not switched on"
    driver.enable("effort")
    braking.cycle(200, effort=(0.1, 0.0))
    fast = motor.velocity
    assert fast > 5.0
    braking.sent.clear()
    began = braking.t_ns
    driver.stop()
    driver.stop()
    assert [(frame.id, frame.data) for frame in braking.sent] == [(3, BRAKE), (8, BRAKE)] * 2
    assert braking.t_ns == began
    efforts = []
    for _ in range(200):
        braking.run(1)
        efforts.append(motor.effort)
        assert motor.effort * motor.velocity <= 0.0
    assert braking.modes == [15, 15]
    assert min(efforts) >= -1.01 * 0.1**2 / 0.1 * fast and np.diff(efforts).min() > -1e-9, "strongest at first"
    assert abs(motor.velocity) < 1e-3 * fast
    braking.run(500)  # no watchdog: it needs no commands
    assert not braking.read().fault.any() and braking.modes == [15, 15]
    assert refused(braking.cycle).endswith("are off; enable the driver first")
    driver.close()
    assert not braking.is_open
    motor.velocity = 1.0
    braking.run(1)
    assert braking.modes == [15, 15] and motor.effort < 0.0
    braking.sent.clear()
    braking.start().cycle(3)
    assert STOP not in [frame.data for frame in braking.sent], "it does not coast on the way"
    assert braking.modes == [10, 10]


def test_a_drive_that_was_off_brakes_too_when_stopped(braking):
    braking.driver.stop()
    braking.run(20)
    assert braking.modes == [15, 15]


def test_braking_clears_neither_a_fault_nor_a_tripped_watchdog(braking, said):
    driver, motors = braking.driver, braking.motors
    driver.enable("effort")
    motors[1].fault_cause = "overcurrent"
    braking.cycle(3)
    motors[1].fault_cause = ""
    driver.stop()
    braking.run(20)
    assert braking.modes == [15, 1] and motors[1].effort == 0.0
    said(refused(driver.enable, "effort"))
    assert driver.latched and STOP not in [frame.data for frame in braking.sent]
    driver.clear()
    braking.run(20)
    assert braking.modes == [15, 15]
    assert {frame.id for frame in braking.sent if frame.data == STOP} == {0x8008}
    driver.enable("effort")
    braking.cycle(3)
    braking.run(120)  # without commands
    driver.stop()
    braking.read()
    assert braking.modes == [11, 11] and braking.faults == [-1, -1]
    driver.close()
    driver.open()
    said(refused(driver.enable, "effort"))
    driver.clear()
    driver.enable("effort")
    assert not braking.cycle(3).fault.any()


def test_firmware_that_may_lack_braking(make, said):
    for stop in ("off", "brake"):
        b = make(1, stop=stop)
        b.servos[0].mode = 10
        b.spoil = lambda frame: (frame._replace(data=frame.data.replace(b"\x82\x02\x05", b"\x82\x02\x04")),)
        if stop == "off":
            b.driver.open()
        else:
            said(refused(b.driver.open))
            assert not b.is_open and b.modes == [0]


CONNECTIONS = {
    "none": {},
    "two": {"bus": BUS, "port": SerialParams("/dev/null")},
    "classic CAN": {"bus": CanParams("virtual", "x")},
    "checksum on a bus": {"bus": BUS, "checksum": True},
}


@pytest.mark.parametrize("keys", CONNECTIONS.values(), ids=CONNECTIONS)
def test_wrong_connections(keys, said):
    with pytest.raises(ValueError) as caught:
        moteus.Params(**keys)
    said(caught.value)


def test_traffic_of_a_cycle_is_what_a_cycle_sends(bench):
    bench.driver.enable("effort")
    bench.sent.clear()
    heard = []
    bench.spoil = lambda frame: heard.append(frame) or (frame,)
    bench.cycle(1)
    estimate = moteus.traffic(bench.params, bench.context)

    def shape(frames):
        return [(f.id, len(f.data), f.extended, f.fd, f.switched) for f in frames]

    assert shape(estimate.out) == shape(bench.sent) and shape(estimate.back) == shape(heard)
    assert QUERY not in [frame.data for frame in bench.sent]
    lines = moteus.traffic(moteus.Params(port=SerialParams("/dev/null"), checksum=True), bench.context)
    assert [len(line) for line in lines.out] == [len("can send 8003  BF *00\r\n") + 96] * 2
