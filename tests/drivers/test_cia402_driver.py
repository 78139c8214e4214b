"""The driver of CiA 402 drives against emulated ones: opening, enabling, the cycle, faults, watchdog and stopping."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pytest

from cosim.drivers import cia402
from cosim.drivers.cia402 import codec, driver, faults, profile
from cosim.drivers.cia402.codec import SYNC
from cosim.drivers.cia402.device import access, objects
from cosim.drivers.common.motor import Rotor
from cosim.drivers.transport import CanFrame, CanParams, ConnectionLost, TrafficMeter, estimate
from cosim.errors import InputError, RunError, SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits

MS = 1_000_000
BUS = CanParams(interface="virtual", channel="arm")
JOINT = cia402.JointParams


class Bench:
    """Driver and emulated drives on a line without delay; time goes by only while somebody waits, in quarters of ms."""

    def __init__(self, *wiring, mode="effort", effort=math.inf, velocity=math.inf, watchdog=0.1, stop="quick"):
        n = len(wiring)
        limits = Limits(*(np.full(n, bound) for bound in (-math.inf, math.inf, velocity, effort)))
        names = tuple(f"joint{k}" for k in range(n))
        place = lambda *keys: SourceLocation("rig.yaml", 7, ".".join(keys))  # noqa: E731
        self.params = cia402.Params(bus=BUS, watchdog=watchdog, stop=stop)
        self.context = DriverContext(names, tuple(wiring), limits, 1e-3, mode, place)
        self.motors = [Rotor() for _ in wiring]
        self.emulator = cia402.emulate(self.params, self.context, self.motors)
        self.name, self.meter = "virtual arm", TrafficMeter()
        self.t, self.opened = 1000 * MS, False
        self.queue: deque[CanFrame] = deque()
        self.sent: list[CanFrame] = []
        self.deaf = self.broken = False
        self.driver = driver.Cia402Driver(self.params, self.context, self)
        self.out, self.cmd = JointState.zeros(n), JointCommand.zeros(n)
        self.step()

    # the link
    def now(self):
        return self.t

    def open(self):
        self.opened = True

    def close(self):
        self.opened = False

    def reopen(self):
        return True

    def send(self, item, deadline_ns):
        if self.broken:
            raise ConnectionLost("the connection is lost", self.name)
        self.sent.append(item)
        if not self.deaf:
            self._arrive(self.emulator.handle(item, self.t))

    def receive(self, deadline_ns):
        if self.broken:
            raise ConnectionLost("the connection is lost", self.name)
        while not self.queue:
            if self.t >= deadline_ns:
                return None
            self.step()
        return self.queue.popleft()

    # the devices
    def _arrive(self, frames):
        self.queue.extend(frame._replace(t_ns=self.t) for frame in frames)

    def step(self):
        self.t += MS // 4
        for motor in self.motors:
            motor.advance(0.25e-3)
        self._arrive(self.emulator.process(self.t))

    def run(self, ms):
        for _ in range(4 * ms):
            self.step()

    # the program
    def write(self):
        self.cmd.valid_until_ns = self.t + 5 * MS
        self.driver.write(self.cmd, self.t + MS)

    def read(self):
        self.driver.read(self.out, self.t + MS)
        return self.out

    def cycle(self, ticks):
        for _ in range(ticks):
            end = self.t + MS
            self.read()
            self.write()
            while self.t < end:
                self.step()

    def node(self, k=0):
        return self.emulator.nodes[k]


@pytest.fixture
def bench(monkeypatch):
    made: list[Bench] = []

    def make(*wiring, **options):
        made.append(Bench(*(wiring or (JOINT(id=1, cpr=4096),)), **options))
        return made[-1]

    return make


@pytest.fixture
def running(bench):
    def make(*wiring, mode="effort", **options):
        b = bench(*wiring, mode=mode, **options)
        b.driver.open()
        b.driver.enable(mode)
        return b

    return make


def refused(action, *arguments):
    with pytest.raises((InputError, RunError)) as error:
        action(*arguments)
    return str(error.value)


# --- opening ------------------------------------------------------------------------------------


def test_open_leaves_motors_off_and_hears_them(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=9, cpr=1000, temperature=0x320101))
    b.motors[1].position = math.pi
    b.driver.open()
    assert [node.state for node in b.emulator.nodes] == [profile.DISABLED] * 2
    out = b.read()
    assert out.position == pytest.approx([0.0, math.pi])
    assert out.temperature[1] == 25.0
    assert math.isnan(out.temperature[0])
    assert out.t_ns == b.t
    assert not out.fault.any()


def test_nobody_answers(bench):
    b = bench(JOINT(id=3))
    b.deaf = True
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: no answer from node 3 on virtual arm; check its power, the id and the bit rate"
    )
    assert not b.opened
    assert b.t < 2300 * MS


def test_a_drive_that_is_still_booting_is_waited_for(bench):
    b = bench(JOINT(id=3))
    send, wake = b.send, b.t + 500 * MS
    b.send = lambda item, deadline: send(item, deadline) if b.t > wake else None
    b.driver.open()
    assert b.read().t_ns > wake


@pytest.mark.parametrize(
    ("wired", "key", "value", "message"),
    [
        ({}, 0x100000, 0x00030191, "node 3 is a device of profile 401, not a drive of CiA 402; check the id"),
        (
            {"vendor": 0x9A},
            0x101801,
            0x5,
            "node 3 'emulated CiA 402 drive' is of vendor 0x5, expected 0x9A; check the id",
        ),
        ({}, 0x650200, 0x80, "node 3 has no mode 'cyclic synchronous torque' (6502h); choose another"),
        ({}, 0x607600, 0, "node 3 does not report its rated torque (6076h); give 'rated_torque'"),
        ({}, 0x608F01, 0, "node 3 does not report its counts per revolution (608Fh); give 'cpr'"),
        ({}, 0x60A900, 0x00010300, "node 3 has an unknown unit of velocity (60A9h: 0x00010300)"),
    ],
)
def test_another_drive_than_expected(bench, wired, key, value, message):
    b = bench(JOINT(id=3, **wired))
    b.node().values[key] = value
    assert refused(b.driver.open) == f"rig.yaml:7 joints.joint0.id: {message}"
    assert not b.opened


def test_limits_beyond_the_drives_own(bench):
    b = bench(JOINT(id=3, ratio=2.0), effort=4.1)
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: the effort limit is 2.05 N*m at node 3, whose own limit is 2.00033 N*m"
        " (6072h, which an earlier run may have lowered until power off); lower the joint's limit or raise the drive's"
    )
    b = bench(JOINT(id=3, ratio=2.0), velocity=51.0)
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: the velocity limit is 102 rad/s at node 3, whose own limit is"
        " 100.007 rad/s (6080h); lower the joint's limit or raise the drive's"
    )


def test_the_drive_keeps_the_guards_limit_while_it_is_open(bench):
    b = bench(JOINT(id=3, ratio=2.0), effort=1.0)
    b.driver.open()
    assert b.node().value(0x607200) == 750  # 0.5 N·m of 0.667 rated, rounded up
    b.driver.close()
    assert b.node().value(0x607200) == 2999
    assert not b.opened


def test_velocity_units_other_than_increments(bench):
    b = bench(JOINT(id=3, cpr=1000), mode="velocity")
    b.node().values[0x60A900] = 0xFDB44700  # thousandths of a turn per minute
    b.driver.open()
    b.driver.enable("velocity")
    b.cmd.velocity[:] = 2 * math.pi
    b.write()
    assert b.node().value(0x60FF00) == 60_000


@pytest.mark.parametrize("pause", [0, 120, 400])
def test_drives_that_a_killed_program_left_on_are_taken_over(running, pause):
    b = running(mode="velocity")
    b.cmd.velocity[:] = 20.0
    b.cycle(200)
    b.node().values[0x608500] = 20_000  # a long ramp
    b.run(pause)
    again = driver.Cia402Driver(b.params, b.context, b)
    again.open()
    again.enable("velocity")
    assert b.node().state == profile.ENABLED
    again.stop()


# --- enabling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", sorted(cia402.MODES))
def test_enable_holds_where_the_motor_is(bench, mode):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096), mode="position")
    b.motors[0].position = 1.0
    b.driver.open()
    b.driver.enable(mode)
    node = b.node()
    assert [n.state for n in b.emulator.nodes] == [profile.ENABLED] * 2
    assert node.mode == {"effort": 10, "velocity": 9, "position": 8}[mode]
    assert node.value(0x101601) == 127 << 16 | 100
    assert (node.value(0x102901), node.value(0x600700), node.value(0x605E00)) == (1, 1, 2)
    b.run(20)
    assert b.motors[0].position == pytest.approx(1.0, abs=1e-3)


def test_the_watchdog_is_set_before_anything_is_switched_on(running):
    b = running()
    b.driver.stop()
    b.sent.clear()
    b.driver.enable("effort")
    consumer = next(k for k, f in enumerate(b.sent) if f.data[:4] == bytes.fromhex("23 16 10 01"))
    shutdown = next(k for k, f in enumerate(b.sent) if f.id == 0x201 and f.data[:1] == b"\x06")
    assert consumer < shutdown


def test_what_cannot_be_enabled(bench):
    b = bench(JOINT(id=3))
    assert refused(b.driver.enable, "effort") == "the drives of joint0 are not open; open the driver first"
    assert refused(b.driver.clear) == "the drives of joint0 are not open; open the driver first"
    b.driver.open()
    assert (
        refused(b.driver.enable, "torque")
        == "the drives of joint0 have no mode 'torque'; use one of effort, position, velocity"
    )
    original = b.emulator.handle

    def without_power(frame, t_ns):  # an enable input that is open
        shut = frame.id == 0x203 and frame.data[0] in (7, 15)
        return original(frame._replace(data=b"\x06" + frame.data[1:]) if shut else frame, t_ns)

    b.emulator.handle = without_power
    assert refused(b.driver.enable, "effort") == (
        "joint 'joint0': node 3 did not switch on within 1 s; it is 'ready to switch on'; check the supply of its power"
        " stage, its enable input and its safe-torque-off input"
    )
    b.deaf = True
    assert (
        refused(b.driver.enable, "effort")
        == "joint 'joint0': no answer from node 3 on virtual arm; check its power, the id and the bit rate"
    )


def test_a_fault_is_not_cleared_silently(bench):
    b = bench(JOINT(id=3))
    b.driver.open()
    b.motors[0].fault_cause = "encoder"
    b.run(1)
    told = "position sensor (drive error 0x7305); check the encoder and its cable"
    b.motors[0].fault_cause = ""
    assert refused(b.driver.enable, "effort") == f"joint 'joint0': fault: {told}"
    assert b.node().state == profile.FAULT
    b.driver.clear()
    b.driver.enable("effort")
    b.motors[0].fault_cause = "encoder"
    b.run(1)
    assert refused(b.driver.clear) == f"joint 'joint0': the fault persists: {told}"


def test_a_missed_heartbeat_does_not_hide_the_fault_before_it(running):
    b = running()
    b.cycle(3)
    b.motors[0].fault_cause = "overcurrent"
    b.run(1)
    b.motors[0].fault_cause = ""
    b.driver.stop()
    b.run(300)
    assert b.node().value(0x603F00) == faults.HEARTBEAT
    assert refused(b.driver.enable, "effort").startswith("joint 'joint0': fault: over current (drive error 0x2310)")
    b.driver.clear()
    b.driver.enable("effort")


def test_a_fault_while_switching_on(bench):
    b = bench(JOINT(id=3))
    b.driver.open()
    original = b.emulator.handle

    def failing(frame, t_ns):
        if frame.id == 0x203:
            b.motors[0].fault_cause = "overcurrent"
        return original(frame, t_ns)

    b.emulator.handle = failing
    assert refused(b.driver.enable, "effort") == (
        "joint 'joint0': fault: over current (drive error 0x2310); check the motor and its cable for a short"
        " circuit, lower the gains"
    )
    assert b.motors[0].effort == 0


def test_objects_that_a_drive_lacks(bench, monkeypatch):
    b = bench(JOINT(id=3, temperature=0x222201))
    b.driver.open()
    b.motors[0].temperature = 40.0
    assert b.read().temperature == pytest.approx([40.0])
    b.node().temperature = 0x320101
    b.driver.close()
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: node 3 cannot map object 2222h to a PDO: no such object (abort code 0x06020000)"
    )
    table = {key: entry for key, entry in objects.OBJECTS.items() if key != 0x60A900}
    monkeypatch.setattr(access, "OBJECTS", table)
    b = bench(JOINT(id=3, cpr=1000), mode="velocity")  # velocities in increments per second then
    b.driver.open()
    b.driver.enable("velocity")
    b.cmd.velocity[:] = 2 * math.pi
    b.write()
    assert b.node().value(0x60FF00) == 1000
    del table[0x101601]
    b = bench(JOINT(id=3))
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: node 3 has no heartbeat consumer (1016h), so it would run on without commands"
    )


def test_a_fault_while_homing(bench):
    b = bench(JOINT(id=3, cpr=4096, homing=cia402.Homing(method=34, slow=1.0)))
    b.driver.open()
    step = b.step

    def failing():
        step()
        if b.node().homing:
            b.motors[0].fault_cause = "overcurrent"

    b.step = failing
    assert refused(b.driver.enable, "effort").startswith("joint 'joint0': while homing: over current")
    assert b.motors[0].effort == 0


def test_home_that_is_not_found(bench):
    b = bench(JOINT(id=3, cpr=4096, homing=cia402.Homing(method=34, slow=1.0)))
    b.driver.open()
    step = b.step

    def broken_off():
        step()
        if b.node().homing:
            b.node().homing, b.node().bits = False, profile.HOMING_ERROR

    b.step = broken_off
    assert refused(b.driver.enable, "effort") == (
        "joint 'joint0': node 3 did not find home by method 34; check its switches"
    )


@pytest.mark.parametrize("mode", ["position", "effort"])
def test_homing(running, mode):
    wired = JOINT(id=3, cpr=4096, homing=cia402.Homing(method=34, search=3.0, slow=20.0, timeout=2.0))
    b = running(wired, mode=mode)
    assert b.motors[0].position >= 2 * math.pi
    assert b.node().value(0x609902) == round(20.0 * 4096 / (2 * math.pi))
    assert b.read().position == pytest.approx([b.motors[0].position - 2 * math.pi], abs=2e-3)


def test_homing_that_fails(bench):
    b = bench(JOINT(id=3, cpr=4096, homing=cia402.Homing(method=34, slow=1.0, timeout=0.5)))
    b.driver.open()
    assert refused(b.driver.enable, "effort") == (
        "joint 'joint0': node 3 did not find home within 0.5 s; check its switches or raise 'homing.timeout'"
    )
    assert b.node().state == profile.DISABLED
    b = bench(JOINT(id=3, homing=cia402.Homing(method=36)))
    b.driver.open()
    assert refused(b.driver.enable, "effort") == (
        "joint 'joint0': node 3 refused its set-up: value out of range (abort code 0x06090030); see the drive's manual"
    )


def test_a_drive_that_lost_its_power_is_set_up_anew(running):
    b = running(effort=1.0)
    b.cycle(3)
    b.emulator.reset(b.t)
    b.cycle(3)
    assert b.out.fault.tolist() == [faults.RESTARTED]
    b.driver.enable("effort")
    b.cycle(3)
    assert b.out.fault.tolist() == [0]
    assert b.node().value(0x607200) == 1500


# --- the cycle ----------------------------------------------------------------------------------


def test_effort_with_the_gains_of_the_host(running):
    b = running(JOINT(id=1, cpr=4096, direction=-1, ratio=4.0, zero=0.5), JOINT(id=2, cpr=4096))
    b.read()
    b.cmd.kp[:], b.cmd.kd[:], b.cmd.position[:], b.cmd.effort[:] = 0.4, 0.01, 1.0, 0.0
    b.write()
    b.run(1)
    # 0.4 (1 − 0.5) = 0.2 N·m at the joint: −0.05 at a drive that counts against it behind a gear of 4
    assert b.motors[0].effort == pytest.approx(-0.05, abs=7e-4)
    assert b.motors[1].effort == pytest.approx(0.4, abs=7e-4)
    b.read()  # what answers the command was measured before it
    assert b.read().effort == pytest.approx([0.2, 0.4], abs=4e-3)
    b.cycle(3000)
    assert b.out.position == pytest.approx([1.0, 1.0], abs=0.03)  # one step of torque is 7 mrad and more


def test_position_with_feedforward(running):
    b = running(JOINT(id=1, cpr=4096, ratio=2.0), mode="position")
    b.cmd.position[:], b.cmd.velocity[:], b.cmd.effort[:] = 0.5, 0.25, 0.667
    b.read()
    b.write()
    node = b.node()
    assert (node.value(0x607A00), node.value(0x60B100), node.value(0x60B200)) == (652, 326, 500)
    b.cmd.velocity[:], b.cmd.effort[:] = 0.0, 0.0
    b.cycle(800)
    assert b.out.position == pytest.approx([0.5], abs=2e-3)


def test_velocity(running):
    b = running(JOINT(id=1, cpr=4096), mode="velocity")
    b.cmd.velocity[:] = -3.0
    b.cycle(300)
    assert b.out.velocity == pytest.approx([-3.0], abs=0.05)


def test_another_mode_than_the_one_it_was_opened_for(bench):
    b = bench(mode="position")
    b.driver.open()
    b.driver.enable("velocity")
    b.cmd.velocity[:] = 1.0
    b.cycle(300)
    assert b.out.velocity == pytest.approx([1.0], abs=0.05)
    b.driver.enable("effort")
    b.cmd.effort[:] = 0.1
    b.write()
    b.run(1)
    assert b.motors[0].effort == pytest.approx(0.1, abs=1e-3)


def test_a_cycle_on_the_wire(running):
    b = running(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096), mode="position")
    b.read()
    b.sent.clear()
    b.write()
    assert [f.id for f in b.sent] == [0x201, 0x301, 0x202, 0x302, 0x77F, 0x80]
    assert [f.id for f in b.queue] == [0x181, 0x281, 0x182, 0x282]
    b.read()
    b.read()  # without a command since: asks
    assert b.sent[-1] == SYNC
    assert len(b.sent) == 7


def test_what_the_slot_does_is_told(running):
    b = running(JOINT(id=1, cpr=4096, ratio=3.0), effort=3.0)
    b.cmd.effort[:] = 100.0
    b.write()
    b.run(1)
    assert b.motors[0].effort == pytest.approx(1.0, abs=1e-3)  # the guard's 3 N·m behind the gear, in 6072h
    assert b.driver.report() == [
        {
            "joint": "joint0",
            "saturated": 1,
            "limit": pytest.approx(2.999 * 0.667 * 3.0),
            "resolution": pytest.approx(0.000667 * 3.0),
        }
    ]


def test_commands_that_are_not_sent(bench):
    b = bench(JOINT(id=1), JOINT(id=2))
    b.driver.open()
    assert refused(b.write) == "the motors of joint0, joint1 are off; enable the driver first"
    b.driver.enable("effort")
    b.sent.clear()
    b.cmd.valid_until_ns = b.t - 2 * MS
    assert (
        refused(b.driver.write, b.cmd, b.t)
        == "the command of joint0, joint1 has expired and was not sent; the program is too late"
    )
    b.cmd.effort[1] = math.nan
    assert refused(b.write) == "the command of joint 'joint1' is not finite and was not sent; check the controller"
    assert b.sent == []


def test_late_answers_are_no_answers_to_the_next_command(running):
    b = running()
    b.read()
    b.write()
    held = list(b.queue)
    b.queue.clear()
    before, position = b.out.t_ns, b.out.position.copy()
    start = b.t
    b.read()
    assert b.t == start + MS  # waited until the deadline
    assert (b.out.t_ns, b.out.position) == (before, position)
    b.queue.extend(held)
    b.motors[0].position = 1.0
    b.write()
    fresh = [b.queue.pop() for _ in held][::-1]
    start = b.t
    b.read()
    assert b.t == start + MS
    b.queue.extend(fresh)
    assert b.read().position == pytest.approx([1.0], abs=2e-3)


def test_one_silent_drive(running):
    b = running(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096))
    b.read()
    old = b.out.t_ns
    b.emulator.nodes = b.emulator.nodes[:1]
    b.motors[0].position = 2.0
    b.write()
    b.read()
    assert b.out.position == pytest.approx([2.0, 0.0], abs=2e-3)
    assert b.out.t_ns == old


def test_never_heard(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096))
    b.driver.open()
    b.motors[0].position = 2.0
    b.out.position[:] = 9.0
    b.emulator.nodes = b.emulator.nodes[:1]
    b.read()
    assert b.out.position == pytest.approx([2.0, 9.0], abs=2e-3)
    assert b.out.t_ns == 0


def test_frames_that_are_not_understood_are_counted(running):
    b = running()
    b.read()
    b.queue.extend(CanFrame(cob_id, b"\1\2\3") for cob_id in (0x181, 0x281, 0x81, 0x701, 0x182, 0x7FF))
    b.queue.append(CanFrame(0x181, b"\1", extended=True))
    b.read()
    assert b.driver.lost == 4
    assert not b.out.fault.any()


def test_a_babbling_node_does_not_hold_a_read_up(running):
    b = running()
    b.read()
    b.receive = lambda deadline: CanFrame(0x123, b"")
    b.read()


def test_a_lost_line_is_told_and_stop_is_quiet(running):
    b = running()
    b.broken = True
    assert refused(b.read) == "virtual arm: the connection is lost"
    assert refused(b.write) == "virtual arm: the connection is lost"
    b.driver.stop()
    b.driver.close()


# --- faults and the watchdog --------------------------------------------------------------------


def test_faults_of_the_drive(running):
    b = running(JOINT(id=1), JOINT(id=2))
    b.cmd.effort[:] = 0.1
    b.cycle(5)
    b.motors[1].fault_cause = "overcurrent"
    b.cycle(3)
    assert b.out.fault.tolist() == [0, 0x2310]
    assert b.motors[1].effort == 0
    assert b.driver.describe_fault(1, 0x2310) == (
        "over current (drive error 0x2310); check the motor and its cable for a short circuit, lower the gains"
    )


def test_open_to_stop_through_a_watchdog_trip(bench):
    b = bench(JOINT(id=1, cpr=4096), mode="velocity", watchdog=0.05)
    b.driver.open()
    b.driver.enable("velocity")
    b.cmd.velocity[:] = 5.0
    b.cycle(300)
    assert not b.out.fault.any()
    assert b.out.velocity == pytest.approx([5.0], abs=0.1)
    b.run(49)
    assert b.node().state == profile.ENABLED
    b.run(100)  # nobody commands
    assert b.node().state == profile.FAULT
    assert b.motors[0].effort == 0
    assert abs(b.motors[0].velocity) < 1.5
    b.read()
    assert b.read().fault.tolist() == [faults.HEARTBEAT]
    b.driver.clear()
    assert b.read().fault.tolist() == [0]
    b.driver.enable("velocity")
    b.cycle(100)
    assert not b.out.fault.any()
    b.driver.stop()
    assert b.node().state == profile.QUICK_STOP
    b.driver.close()
    b.run(200)
    assert b.node().state == profile.DISABLED  # its watchdog was let go


def test_reading_does_not_feed_the_watchdog(running):
    b = running()
    b.cycle(3)
    for _ in range(300):
        b.read()
        b.run(1)
    assert b.read().fault.tolist() == [faults.HEARTBEAT]


def test_a_drive_that_cannot_be_told_how_to_stop_leaves_operational(bench, monkeypatch):
    table = {key: entry for key, entry in objects.OBJECTS.items() if key != 0x600700}
    monkeypatch.setattr(access, "OBJECTS", table)
    b = bench()
    b.driver.open()
    b.driver.enable("effort")
    assert b.node().value(0x102901) == 0
    b.cycle(3)
    b.run(250)
    assert b.node().nmt == codec.PREPARED
    b.read()
    assert b.read().fault.tolist() == [faults.HEARTBEAT]


def test_silence_between_two_runs_is_no_fault(running):
    b = running()
    b.cycle(3)
    b.driver.stop()
    b.run(500)
    assert b.node().state == profile.FAULT
    b.driver.enable("effort")
    b.cycle(3)
    assert not b.out.fault.any()


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (CanFrame(0x601, bytes.fromhex("2B 40 60 00 00 00 00 00")), faults.SWITCHED_OFF),
        (CanFrame(0x601, bytes.fromhex("2B 40 60 00 02 00 00 00")), faults.STOPPING),
        (CanFrame(0x601, bytes.fromhex("2F 60 60 00 03 00 00 00")), faults.OTHER_MODE),
        (CanFrame(0x000, bytes.fromhex("81 01")), faults.RESTARTED),
    ],
)
def test_drives_that_stop_running_by_themselves(running, frame, code):
    b = running()
    b.node().values[0x605A00] = 6
    b.cycle(3)
    b.send(frame, 0)
    b.run(1)
    b.read()
    assert b.read().fault.tolist() == [code]
    assert b.driver.describe_fault(0, code).split(";")[0] == faults.DRIVER_CODES[code][0]


def test_a_fault_without_a_code(running):
    b = running()
    b.read()
    b.queue.append(codec.status_answer(1, codec.DriveStatus(0x0208, 10, 0.0), codec.Step(1, 1, 1))._replace(t_ns=b.t))
    store = b.driver._store
    while b.queue:
        store.take(b.queue.popleft())
    assert store.fault(0, profile.CST) == faults.UNNAMED


def test_an_emergency_that_is_only_a_warning(running):
    b = running()
    b.cycle(2)
    b.queue.append(codec.emergency(1, 0x8110, 0x11))
    b.cycle(2)
    assert b.out.fault.tolist() == [0]


# --- stopping -----------------------------------------------------------------------------------


def test_stop_from_anywhere(bench):
    b = bench(JOINT(id=1), JOINT(id=2))
    b.driver.stop()
    b.driver.open()
    b.driver.stop()
    b.driver.enable("position")
    b.cycle(3)
    b.driver.stop()
    b.driver.stop()
    b.run(1)
    assert [node.state for node in b.emulator.nodes] == [profile.DISABLED] * 2
    assert [m.effort for m in b.motors] == [0.0, 0.0]
    assert not b.read().fault.any()
    assert refused(b.write) == "the motors of joint0, joint1 are off; enable the driver first"


def test_stop_reaches_a_drive_that_takes_no_process_data(running):
    b = running()
    b.node().nmt = codec.PREPARED
    b.driver.stop()
    assert b.node().state == profile.QUICK_STOP


def without_sync(frames):
    return [(f.id, f.data.hex(" ")) for f in frames if f != SYNC]


@pytest.mark.parametrize(("stop", "word"), [("quick", "02 00"), ("off", "00 00")])
def test_the_command_that_stops_goes_out_as_process_data_and_by_sdo(running, stop, word):
    b = running(JOINT(id=1), JOINT(id=2), stop=stop)
    b.cmd.effort[:] = 0.1
    b.cycle(3)
    b.sent.clear()
    t = b.t
    b.driver.stop()
    assert b.t == t  # nobody is waited for
    assert without_sync(b.sent) == [
        (0x201, f"{word} 00 00"),
        (0x202, f"{word} 00 00"),
        (0x601, f"2b 40 60 00 {word} 00 00"),
        (0x602, f"2b 40 60 00 {word} 00 00"),
    ]
    assert b.sent[2] == SYNC  # at which the drives take it over
    assert b.node().state == (profile.QUICK_STOP if stop == "quick" else profile.DISABLED)


def moved(b, mode, speed=20.0):
    """The drive turns at about this speed [rad/s], held back by friction."""
    b.cmd.position[:], b.cmd.velocity[:], b.cmd.effort[:] = b.read().position, speed, 0.0
    for _ in range(1500):
        if mode == "effort":
            b.cmd.effort[:] = 0.05 * (speed - b.out.velocity) + 1e-3 * speed
        if mode == "position":
            b.cmd.position += 1e-3 * speed
        b.cycle(1)
    assert b.out.velocity == pytest.approx([speed], rel=0.05)
    assert not b.out.fault.any()


def trace(b, most=2000):
    """(velocity, effort) of every quarter of a ms until the drive is off."""
    rows = [(b.motors[0].velocity, b.motors[0].effort)]
    while b.node().state in profile.POWERED and len(rows) < 4 * most:
        b.step()
        rows.append((b.motors[0].velocity, b.motors[0].effort))
    return np.array(rows).T


@pytest.mark.parametrize("mode", sorted(cia402.MODES))
def test_a_motor_that_moves_is_led_to_a_standstill_before_it_is_off(running, mode):
    b = running(mode=mode, effort=1.5, watchdog=1.0)
    moved(b, mode)
    b.node().values[0x608500] = 65190  # 100 rad/s²: 0.2 s from this speed
    b.driver.stop()
    velocity, effort = trace(b)
    assert b.node().state == profile.DISABLED
    assert 0.2 < 0.25e-3 * velocity.size < 0.4
    assert np.abs(velocity - np.maximum(20.0 - 0.025 * np.arange(velocity.size), 0.0)).max() < 2.0
    assert abs(velocity[-1]) < 1.1  # the window of the emulated drive, a hundredth of its greatest velocity
    assert np.abs(np.diff(effort[:-1])).max() < 0.05  # of 1.5 N·m: no jump
    assert effort[-1] == 0.0
    b.run(50)
    assert b.motors[0].effort == 0.0
    assert not b.read().fault.any()


def test_a_load_is_held_down_the_ramp(running):
    """In effort mode too, where the velocity loop of the drive was not at work before."""
    b = running(watchdog=1.0)
    motor, pull = b.motors[0], 0.5
    ask = motor.request

    def loaded(effort):
        ask(effort)
        motor.requested, motor.effort = effort, motor.effort - pull

    motor.request = loaded
    b.cmd.kd[:], b.cmd.effort[:] = 0.1, pull
    b.cycle(500)
    assert abs(motor.velocity) < 0.1
    place = motor.position
    b.node().values[0x606D00] = 0  # never slow enough: it holds on until its patience is over
    b.driver.stop()
    b.run(300)
    assert b.node().state in profile.POWERED
    assert motor.position == pytest.approx(place, abs=0.02)
    assert motor.requested == pytest.approx(pull, abs=0.01)


def test_a_drive_that_does_not_take_the_option_is_switched_off(running, monkeypatch):
    table = {key: entry for key, entry in objects.OBJECTS.items() if key != 0x605A00}
    monkeypatch.setattr(access, "OBJECTS", table)
    b = running()
    b.sent.clear()
    b.driver.stop()
    assert without_sync(b.sent) == [(0x201, "00 00 00 00"), (0x601, "2b 40 60 00 00 00 00 00")]
    assert b.node().state == profile.DISABLED


@pytest.mark.parametrize("watchdog", [0.1, 1.0])
def test_closing_waits_for_the_end_of_the_ramp(running, watchdog):
    b = running(mode="velocity", watchdog=watchdog)
    moved(b, "velocity")
    b.node().values[0x608500] = 26076  # 40 rad/s²: 0.5 s, longer than a watchdog
    t = b.t
    b.driver.close()
    assert 490 * MS < b.t - t < 800 * MS
    assert b.node().state == profile.DISABLED
    assert b.node().errors == []
    assert abs(b.motors[0].velocity) < 1.1
    assert not b.opened


def test_closing_waits_a_second_at_most(running):
    b = running(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096), mode="velocity")
    b.cmd.velocity[:] = 20.0
    b.cycle(500)
    for node in b.emulator.nodes:
        node.values[0x608500] = 652  # 20 s
    t = b.t
    b.driver.close()
    assert 1000 * MS <= b.t - t < 1200 * MS
    assert [node.state for node in b.emulator.nodes] == [profile.DISABLED] * 2
    assert [motor.effort for motor in b.motors] == [0.0, 0.0]
    assert [node.value(0x101601) for node in b.emulator.nodes] == [0, 0]


def test_closing_does_not_wait_for_drives_on_a_lost_line(running):
    b = running()
    b.broken = True
    t = b.t
    b.driver.close()
    assert b.t == t


def test_enabling_and_clearing_wait_for_the_end_of_the_ramp(running):
    b = running(mode="velocity")
    for action in (lambda: b.driver.enable("velocity"), b.driver.clear):
        b.driver.enable("velocity")
        moved(b, "velocity")
        b.node().values[0x608500] = 26076
        t = b.t
        action()
        assert 490 * MS < b.t - t < 900 * MS
        assert b.node().errors == []


@pytest.mark.parametrize("action", ["enable", "clear"])
def test_a_ramp_that_takes_too_long_is_told_and_goes_on(running, action):
    b = running(mode="velocity")
    moved(b, "velocity")
    b.node().values[0x608500] = 6519  # 2 s
    t = b.t
    assert refused(getattr(b.driver, action), *(["velocity"] if action == "enable" else [])) == (
        "joint 'joint0': node 1 is not off 1 s after it was stopped; check its quick stop deceleration (6085h)"
    )
    assert b.t - t < 1100 * MS
    assert b.node().state == profile.QUICK_STOP
    assert not b.driver.latched


def test_drives_that_are_stopped_meanwhile_are_not_switched_on(bench):
    b = bench(JOINT(id=3))
    b.driver.open()
    send = b.send

    def stopping(item, deadline):
        send(item, deadline)
        if item.id == 0x203 and item.data[:1] == b"\x06":
            b.send = send
            b.driver.stop()

    b.send = stopping
    assert refused(b.driver.enable, "effort") == "the motors of joint0 were stopped; enable the driver first"
    b.run(20)
    assert b.node().state == profile.DISABLED


def test_a_drive_that_is_stopped_does_not_home_on(bench):
    b = bench(JOINT(id=3, cpr=4096, homing=cia402.Homing(method=34, slow=1.0)))
    b.driver.open()
    step = b.step

    def stopping():
        step()
        if b.node().homing:
            b.step = step
            b.driver.stop()

    b.step = stopping
    refused(b.driver.enable, "effort")
    b.run(20)
    assert b.node().state == profile.DISABLED
    assert b.motors[0].effort == 0.0


def test_closing_twice(running):
    b = running()
    b.driver.close()
    b.driver.close()
    assert not b.opened
    assert b.node().nmt == codec.PREPARED
    assert refused(b.driver.enable, "effort") == "the drives of joint0 are not open; open the driver first"


@pytest.mark.parametrize("watchdog", [0.1, 3.0])
def test_a_drive_that_may_still_run_keeps_its_watchdog(running, watchdog):
    b = running(watchdog=watchdog)
    b.cycle(2)
    original = b.emulator.handle

    def stuck(frame, t_ns):
        return [] if frame.data[:4] == bytes.fromhex("2B 40 60 00") or frame.id == 0x201 else original(frame, t_ns)

    b.emulator.handle = stuck
    b.sent.clear()
    b.driver.close()
    assert CanFrame(0x77F, b"\x05") not in b.sent  # a drive that does not obey is not fed
    if watchdog > 1.0:
        assert b.node().state == profile.ENABLED
        assert b.node().value(0x101601) == 127 << 16 | 3000
        b.run(3000)
    assert b.node().state == profile.FAULT


# --- the family ---------------------------------------------------------------------------------


def test_traffic_is_what_a_cycle_sends(bench):
    for mode, share in (("effort", 0.83), ("position", 1.10)):
        b = bench(*(JOINT(id=k + 1, temperature=0x320101) for k in range(2)), mode=mode)
        b.driver.open()
        b.driver.enable(mode)
        b.read()
        b.sent.clear()
        b.write()
        traffic = cia402.traffic(b.params, b.context)
        assert [(f.id, len(f.data)) for f in traffic.out] == [(f.id, len(f.data)) for f in b.sent]
        assert [(f.id, len(f.data)) for f in traffic.back] == [(f.id, len(f.data)) for f in b.queue]
        assert estimate(traffic, BUS, 1e-3) == pytest.approx(share, abs=0.01)


def test_names_and_addresses():
    assert cia402.connection_name(cia402.Params(bus=BUS)) == "virtual arm"
    assert JOINT(id=42).address == 42
    assert {"effort", "velocity", "position"} == cia402.MODES


def test_a_watchdog_shorter_than_the_period(bench):
    b = bench(watchdog=0.001)
    assert refused(cia402.load, b.params, b.context) == (
        "rig.yaml:7 watchdog: must be longer than the period of 0.001 s, is 0.001 s"
    )


def test_the_id_of_this_program_is_that_of_a_drive(bench):
    b = bench(JOINT(id=126, cpr=4096), JOINT(id=127, cpr=4096))
    assert refused(cia402.load, b.params, b.context) == (
        "rig.yaml:7 master: 127 is the id of the drive of joint 'joint1'; use an id that no drive has"
    )


def test_frames_that_gathered_while_nobody_listened(running):
    """A full buffer keeps what came first, and loses the answers to what is asked then."""
    b = running()
    b.driver.stop()
    b.read()
    arrive = b._arrive
    b._arrive = lambda frames: arrive(frames) if len(b.queue) < 50 else None
    b.run(10_000)
    assert len(b.queue) >= 50
    b.driver.enable("effort")
    b.cycle(5)
    assert b.out.fault[0] == 0


def test_load_makes_a_driver_on_its_own_bus(bench):
    b = bench()
    made = cia402.load(b.params, b.context)
    assert made.joints == ("joint0",)
    assert (made.watchdog, made.modes) == (0.1, cia402.MODES)
    made.close()
