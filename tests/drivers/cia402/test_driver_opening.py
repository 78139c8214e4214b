"""Opening and enabling the driver of CiA 402 drives."""

from __future__ import annotations

import math

import pytest

from cosim.drivers import cia402
from cosim.drivers.cia402 import codec, driver, faults, process_data, profile, setup
from cosim.drivers.cia402.device import access, objects
from tests.drivers.cia402.driver_bench import JOINT, refused
from tests.kit.clock import MS


def test_open_leaves_motors_off_and_measures_them(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=9, cpr=1000, temperature=0x320101))
    b.motors[1].position = math.pi
    b.driver.open()
    assert [node.state for node in b.emulator.nodes] == [profile.DISABLED] * 2
    out = b.read()
    assert out.position == pytest.approx([0.0, math.pi])
    assert out.temperature[1] == 25.0
    assert math.isnan(out.temperature[0])
    assert out.t_ns == b.t_ns
    assert not out.fault.any()


def test_no_drive_answers(bench):
    b = bench(JOINT(id=3))
    b.deaf = True
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: no answer from node 3 on virtual arm; check its power, the id and the bit rate"
    )
    assert not b.is_open
    assert b.t_ns < 2300 * MS


def test_a_drive_that_is_still_booting_is_waited_for(bench):
    b = bench(JOINT(id=3))
    send, wake = b.send, b.t_ns + 500 * MS
    b.send = lambda item, deadline: send(item, deadline) if b.t_ns > wake else None
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
        (
            {},
            0x608F01,
            0,
            "node 3 has a feed constant (6092h) but no encoder resolution (608Fh) to which it belongs; give 'cpr', its"
            " position units per revolution",
        ),
        ({}, 0x60A900, 0x00010300, "node 3 has an unknown unit of velocity (60A9h: 0x00010300); give 'velocity_unit'"),
    ],
)
def test_another_drive_than_expected(bench, wired, key, value, message):
    b = bench(JOINT(id=3, **wired))
    b.node().values[key] = value
    assert refused(b.driver.open) == f"rig.yaml:7 joints.joint0.id: {message}"
    assert not b.is_open


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
    assert not b.is_open


def test_velocity_units_other_than_increments(bench):
    b = bench(JOINT(id=3, cpr=1000), mode="velocity")
    b.node().values[0x60A900] = 0xFDB44700  # thousandths of a turn per minute
    b.driver.open()
    b.driver.enable("velocity")
    b.cmd.velocity[:] = 2 * math.pi
    b.write()
    assert b.node().value(0x60FF00) == 60_000


@pytest.mark.parametrize("pause", [0, 120, 400])
def test_drives_that_a_killed_program_left_on_are_switched_off(running, pause):
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
    text = "position sensor (drive error 0x7305); check the encoder and its cable"
    b.motors[0].fault_cause = ""
    assert refused(b.driver.enable, "effort") == f"joint 'joint0': fault: {text}"
    assert b.node().state == profile.FAULT
    b.driver.clear()
    b.driver.enable("effort")
    b.motors[0].fault_cause = "encoder"
    b.run(1)
    assert refused(b.driver.clear) == f"joint 'joint0': the fault persists: {text}"


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


@pytest.mark.parametrize("forgets", [False, True], ids=["with history", "without history"])
def test_a_missed_heartbeat_does_not_hide_the_fault_that_a_killed_program_left(running, forgets):
    b = running()
    b.cycle(3)
    b.motors[0].fault_cause = "overcurrent"
    b.run(1)
    b.motors[0].fault_cause = ""
    b.run(300)
    if forgets:
        b.node().values[0x100300] = 0
    assert b.node().value(0x603F00) == faults.HEARTBEAT
    b.driver = driver.Cia402Driver(b.params, b.context, b)  # of the next program
    b.driver.open()
    named = "fault without an error code" if forgets else "over current (drive error 0x2310)"
    assert refused(b.driver.enable, "effort").startswith(f"joint 'joint0': fault: {named}")
    assert b.node().state == profile.FAULT
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
    b = bench(JOINT(id=3, cpr=1000), mode="velocity")
    assert refused(b.driver.open) == (
        "rig.yaml:7 joints.joint0.id: node 3 does not report its unit of velocity (60A9h), which velocity mode needs;"
        " give 'velocity_unit', such as 'rpm' or 'counts/s', from its manual"
    )
    b = bench(JOINT(id=3, cpr=1000, velocity_unit="counts/s"), mode="velocity")
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


def test_a_drive_that_lost_its_power_is_set_up_again(running):
    b = running(effort=1.0)
    b.cycle(3)
    b.emulator.reset(b.t_ns)
    b.cycle(3)
    assert b.out.fault.tolist() == [faults.RESTARTED]
    b.driver.enable("effort")
    b.cycle(3)
    assert b.out.fault.tolist() == [0]
    assert b.node().value(0x607200) == 1500


def process_data_to_unmapped_drives(b) -> list[str]:
    """What reaches a drive as process data, SYNC or a command to operate before its PDOs are those of the driver."""
    wanted = [
        [len(objects), *objects] for objects in (*process_data.RPDO_OBJECTS["position"], *process_data.TPDO_OBJECTS)
    ]
    found, send = [], b.send

    def mapped(node) -> bool:
        keys = (0x160000, 0x160100, 0x1A0000, 0x1A0100)
        real = [[node.value(key + k) for k in range(1 + node.value(key))] for key in keys]
        valid = [node.value(key + 1) >> 31 for key in (0x140000, 0x140100, 0x180000, 0x180100)]
        kinds = [node.value(key + 2) for key in (0x140000, 0x140100, 0x180000, 0x180100)]
        return real == wanted and valid == [0] * 4 and kinds == [1] * 4

    def checking(frame, deadline_ns):
        process_data = frame.id == codec.SYNC_ID or 0x200 <= frame.id < 0x580
        starts = frame.id == codec.NMT and frame.data[0] == codec.START
        if frame.id == codec.NMT and frame.data[0] == codec.PRE_OPERATIONAL:
            found.append("prepared")
        if (process_data or starts) and not all(mapped(node) for node in b.emulator.nodes):
            found.append(f"{frame.id:03X} {frame.data.hex()}")
        send(frame, deadline_ns)

    b.send = checking
    return found


def test_drives_get_no_process_data_before_all_of_them_are_mapped(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096), mode="position")
    found = process_data_to_unmapped_drives(b)
    b.driver.open()
    assert set(found) == {"prepared"}
    b.driver.enable("position")
    b.cycle(3)
    assert set(found) == {"prepared"}
    b.driver.stop()
    b.run(300)
    b.emulator.reset(b.t_ns)  # after a loss of power they are mapped again
    b.run(1)
    found.clear()
    b.driver.enable("position")
    b.cycle(3)
    prepared = len(found) - found[::-1].index("prepared")
    assert found[prepared:] == [], "what stops drives that may be on comes before"


def test_a_fault_without_history_keeps_its_code(running):
    b = running()
    b.cycle(3)
    b.motors[0].fault_cause = "overcurrent"
    b.run(1)
    b.motors[0].fault_cause = ""
    b.node().values[0x100300] = 0
    assert setup.standing_error(b.driver._client, 1) == faults.OVERCURRENT


def test_a_drive_that_missed_the_command_to_operate_gets_it_again(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096))
    b.driver.open()
    send, missed = b.send, []

    def losing(frame, deadline_ns):
        if frame.id == codec.NMT and frame.data == bytes((codec.START, 2)) and not missed:
            missed.append(frame)
            return
        send(frame, deadline_ns)

    b.send = losing
    b.driver.enable("effort")
    assert missed and [node.state for node in b.emulator.nodes] == [profile.ENABLED] * 2
