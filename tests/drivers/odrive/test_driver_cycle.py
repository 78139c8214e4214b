"""The driver of ODrives, on CAN and on a serial link: switching on, cycle, faults, damaged items."""

import numpy as np
import pytest

from cosim.core.errors import InputError
from cosim.core.units import TURN
from cosim.plugins.drivers import odrive
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.axis import Axis
from cosim.plugins.drivers.transport import CanFrame, estimate
from tests.drivers.bench import refused
from tests.drivers.odrive.conftest import LINES
from tests.kit.clock import MS


def test_from_opening_to_stopping(bench, said):
    b = bench()
    b.motors[0].position, b.motors[1].position = 1.0, 2.0
    b.driver.open()
    assert b.armed == [False, False]
    assert b.read().position == pytest.approx([1.0, -1.0], abs=1e-5) and b.out.t_ns > 0
    b.driver.enable("effort")
    assert b.armed == [axis.enable_watchdog for axis in b.axes] == [True, True]
    assert [axis.watchdog_timeout for axis in b.axes] == pytest.approx([0.1, 0.1])
    b.cycle(20, effort=[0.5, 0.25])
    assert b.efforts == pytest.approx([0.5, -0.125])  # efforts go by the inverse ratio
    assert b.out.effort == pytest.approx([0.5, 0.25], rel=1e-4)
    assert b.out.velocity[0] == pytest.approx(b.motors[0].velocity, rel=0.2)
    assert b.faults == [0, 0]
    b.run(150)  # no commands: the drives stop by themselves
    assert b.armed == [False, False] and b.efforts == [0.0, 0.0]
    b.cycle(110)  # until each has sent a heartbeat
    assert b.faults == [axis.disarm_reason for axis in b.axes] == [codes.WATCHDOG_EXPIRED] * 2
    said(b.driver.describe_fault(0, b.faults[0]))
    b.driver.stop()
    assert refused(b.driver.enable, "effort").startswith("joint 'j0': fault: watchdog timer expired")
    b.driver.clear()
    b.driver.enable("effort")
    assert b.armed == [True, True]
    b.driver.stop()
    assert b.armed == [False, False] and b.driver.lost == 0
    b.driver.close()
    assert not b.is_open


def test_impedance_on_the_host(bench):
    b = bench().start()
    b.cycle(500, position=[0.3, -0.2], kp=0.4, kd=0.02)
    assert b.out.position == pytest.approx([0.3, -0.2], abs=0.02) and b.driver.lost == 0


def test_feedforward_is_in_the_command(bench, kind):
    b = bench("position").start()
    b.cycle(effort=[0.4, 0.5])
    assert [axis.input_torque for axis in b.axes] == pytest.approx([0.4, -0.25])
    rows = b.driver.report()
    if kind == "port":
        assert rows[0] == {"joint": "j0", "saturated": 0, "limit": None, "resolution": 0.0}
        return
    assert rows[0] == {"joint": "j0", "saturated": 0, "limit": pytest.approx(32.767), "resolution": 1e-3}
    assert rows[1]["limit"] == pytest.approx(65.534)
    b.cycle(effort=[40.0, 0.5])
    assert b.driver.report()[0]["saturated"] == 1


def test_another_scale_of_the_feedforward(on_bus):
    b = on_bus("position")
    for axis in b.axes:
        axis.input_torque_scale, axis.input_vel_scale = 100, 200
    b.start().cycle(effort=[1.234, 0.0], velocity=[1.0, 0.0])
    assert b.axes[0].input_torque == pytest.approx(1.23)
    assert b.axes[0].input_vel == pytest.approx(1.0 / TURN, abs=1 / 400)
    assert b.driver.report()[0]["resolution"] == pytest.approx(0.01)


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_after_the_last_command_of_a_killed_program_the_motors_coast(bench, mode):
    b = bench(mode).start()
    for tick in range(200):
        b.cycle(kd=0.05, velocity=1.0, position=1e-3 * tick)
    assert min(abs(motor.velocity) for motor in b.motors) > 0.3
    b.run(102)
    assert [axis.disarm_reason for axis in b.axes] == [codes.WATCHDOG_EXPIRED] * 2 and b.efforts == [0.0, 0.0]


def test_configuring_comes_before_switching_on(on_port):
    b = on_port()
    b.driver.open()
    b.sent.clear()
    b.driver.enable("effort")
    text = b"".join(b.sent).decode()
    written = ("config.watchdog_timeout 0.1", "config.enable_watchdog 1")
    order = [*(f"w axis0.{words}" for words in written), "c 0 0", "w axis0.requested_state 8"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "sc" not in text.split("*")[0].split()  # no fault is cleared silently


def test_a_drive_switched_off_by_another_master(bench, said):
    b = bench().start()
    b.axes[0].request(codes.IDLE, b.t_ns)
    b.cycle(120)
    assert b.faults == [codes.LEFT_CLOSED_LOOP, 0]
    said(b.driver.describe_fault(0, -1))


def test_a_drive_that_went_silent(bench):
    b = bench().start()
    b.cycle(10)
    before = b.out.t_ns
    b.spoil = lambda item: ()
    b.cycle(600)
    assert b.out.t_ns == before  # late: the old values stay
    assert b.faults == [codes.SILENT] * 2


def test_temperatures_and_the_effort_from_the_current(bench):
    b = bench(wiring=({"torque_constant": 0.2}, {})).start()
    b.motors[0].temperature, b.motors[1].temperature = 41.5, 50.25
    b.cycle(80, effort=0.5)
    assert b.out.temperature == pytest.approx([41.5, 50.25])
    assert b.out.effort == pytest.approx([1.0, 0.5])  # the rotor's constant is half of that


def test_homing(bench):
    b = bench("position", wiring=({"homing": True}, {}))
    b.motors[0].position = 0.8
    b.driver.open()
    b.axes[0].reset(b.t_ns)  # power comes back here: the encoder counts from where it is
    assert b.read(20).position[0] == pytest.approx(0.0, abs=1e-6)
    b.driver.enable("position")
    b.cycle(5)
    assert b.axes[0].is_homed
    assert b.out.position[0] == pytest.approx(b.motors[0].position, abs=0.01)
    assert abs(b.motors[0].position) < 0.05


def test_homing_that_does_not_end_or_has_no_end_stop(bench, said):
    for place, stop in ((50.0, True), (0.0, False)):
        b = bench("position", wiring=({"homing": True}, {}), homing_timeout=0.3)
        b.motors[0].position, b.axes[0].min_endstop_enabled = place, stop
        b.driver.open()
        said(refused(b.driver.enable, "position"))
        assert b.armed == [False, False]


def test_a_receive_buffer_that_overflowed_between_reads(bench):
    """What came first was kept and the rest was lost, as with the buffer of a socket."""
    b = bench()
    b.driver.open()
    b.spoil = lambda item: (item,) if len(b.queue) < 60 else ()
    for mode in ("effort", "velocity"):
        b.run(700)
        assert not any(b.read(20).fault)
        b.run(700)
        b.driver.enable(mode)
        for _ in range(700):
            assert not any(b.cycle().fault)
        b.driver.stop()


class Stubborn(Axis):
    """Keeps its watchdog."""

    watchdog_timeout = property(lambda self: 3.0, lambda self, value: None)


class Unlimited(Axis):
    """Keeps its torque limit."""

    torque_soft_max = property(lambda self: 2.0, lambda self, value: None)


class Deaf(Axis):
    """Does not switch on."""

    def request(self, state, t_ns):
        pass


@pytest.mark.parametrize("kept", [Stubborn, Unlimited, Deaf])
def test_a_drive_that_cannot_be_set_or_switched_on(bench, kept, said):
    b = bench("position", 40.0, 1.5)
    b.driver.open()
    b.axes[1].__class__ = kept
    said(refused(b.driver.enable, "position"))
    assert b.armed == [False, False]


def test_frames_of_other_nodes_are_ignored(on_bus):
    b = on_bus().start()
    b.arrive([can.encode(40, can.GET_ENCODER_ESTIMATES, 9.0, 9.0), CanFrame(40 << 5 | 9, b"\x01")])
    b.arrive([can.request(3, can.GET_IQ)])
    b.cycle()
    assert b.driver.lost == 0 and abs(b.out.position[0]) < 0.1


def test_lost_and_damaged_lines(on_port):
    """Answers that are missing are not mistaken for others, and the driver finds back."""
    b = on_port().start()
    b.motors[0].position = b.motors[1].position = 10.0
    b.cycle(10)
    numbers = iter(range(10_000))

    def spoil(item):
        n = next(numbers)
        if n % 7 == 3:
            return ()
        # others are cut anywhere
        return (bytes([item[0] ^ 1]) + item[1:],) if n % 11 == 5 else (item[:2], item[2:])

    b.spoil = spoil
    for _ in range(400):
        b.cycle()
        assert not b.out.effort.any() and b.out.position[0] == pytest.approx(10.0, abs=1e-4)
    assert b.driver.lost > 10
    b.spoil = lambda item: (item,)
    b.cycle(200)
    before = b.out.t_ns
    assert b.cycle(10).t_ns == before + 10 * MS


@pytest.mark.parametrize("late_ms", [60, 75, 110, 170])
def test_answers_that_come_after_the_next_request_are_not_taken_for_its_answers(on_port, late_ms):
    """Answers have no address: the state 8, closed loop, would be the error 0x8."""
    b = on_port(watchdog=1.0).start()
    b.cycle(3)
    late = []
    for turn in range(200):
        b.spoil = (lambda item: late.append((b.t_ns + late_ms * MS, item)) or ()) if turn % 100 < 3 else lambda i: (i,)
        b.cycle(effort=0.01)
        b.queue.extendleft(reversed([row for row in late if row[0] <= b.t_ns]))
        late[:] = [row for row in late if row[0] > b.t_ns]
        assert b.faults == [0, 0], b.driver.describe_fault(0, max(b.faults))
    seen = b.out.t_ns
    assert b.cycle(5).t_ns > seen


WRONG = {"no line": {}, "two lines": LINES, "endpoints of a port": {"port": LINES["port"], "endpoints": "x.json"}}


@pytest.mark.parametrize("keys", WRONG.values(), ids=WRONG)
def test_wrong_parameters(keys, said):
    with pytest.raises(ValueError) as caught:
        odrive.Params(**keys)
    said(caught.value)


def test_addresses(on_bus, said):
    assert (odrive.JointParams(id=62).address, odrive.JointParams(axis=1).address) == (62, 1)
    with pytest.raises(ValueError) as caught:
        odrive.JointParams()
    said(caught.value)
    with pytest.raises(InputError) as caught:
        odrive.load(odrive.Params(port=LINES["port"]), on_bus().context)
    said(caught.value)


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_traffic_is_what_a_cycle_sends(bench, kind, mode):
    b = bench(mode).start()
    traffic = odrive.traffic(b.params, b.context)
    b.sent.clear()
    b.cycle(64)
    if kind == "port":
        assert max(map(len, b.sent)) <= sum(map(len, traffic.out))
        return

    def shapes(frames):
        return sorted((frame.id, len(frame.data), frame.remote) for frame in frames)

    assert shapes(traffic.out[:-1]) == shapes(b.sent[-6:])
    assert 1.1 < estimate(traffic, LINES["bus"], 1e-3) < 1.3  # two joints fill 1 Mbit/s at 1 kHz


def test_the_loops_of_the_drive_stay_within_the_guards_effort(bench):
    for mode in ("velocity", "position"):
        b = bench(mode, 40.0, 0.5).start()
        b.cmd.position[:], b.cmd.velocity[:] = 5.0, 25.0
        most = np.abs([(b.cycle(), b.efforts)[1] for _ in range(100)]).max(axis=0)
        # the second joint has a gear of 2; both were pushed as hard as they may be
        assert most == pytest.approx([0.5, 0.25], rel=1e-6)
