"""Opening and enabling the driver of CiA 402 drives."""

import math

import pytest

from cosim.plugins.drivers import cia402
from cosim.plugins.drivers.cia402 import codec, faults, process_data, profile, setup
from tests.drivers.bench import refused
from tests.drivers.cia402.conftest import JOINT
from tests.kit.clock import MS


def test_open_leaves_motors_off_and_measures_them(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=9, cpr=1000, temperature=0x320101))
    b.motors[1].position = math.pi
    b.driver.open()
    assert b.states == [profile.DISABLED] * 2
    out = b.read()
    assert out.position == pytest.approx([0.0, math.pi])
    assert math.isnan(out.temperature[0]) and out.temperature[1] == 25.0
    assert out.t_ns == b.t_ns and not out.fault.any()


def test_no_drive_answers(bench, said):
    b = bench(JOINT(id=3))
    b.hears = lambda frame: False
    said(refused(b.driver.open))
    assert not b.is_open and b.t_ns < 3300 * MS


def test_a_drive_that_is_still_booting_is_waited_for(bench):
    b = bench(JOINT(id=3))
    wake = b.t_ns + 500 * MS
    b.hears = lambda frame: b.t_ns > wake
    b.driver.open()
    assert b.read().t_ns > wake


OTHERS = {
    "another profile": ({}, 0x100000, 0x00030191),
    "another vendor": ({"vendor": 0x9A}, 0x101801, 0x5),
    "no such mode": ({}, 0x650200, 0x80),
    "no rated torque": ({}, 0x607600, 0),
    "no encoder resolution": ({}, 0x608F01, 0),
    "unknown unit": ({}, 0x60A900, 0x00010300),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_drive_than_expected(bench, other, said):
    wired, key, value = other
    b = bench(JOINT(id=3, **wired))
    b.node().values[key] = value
    said(refused(b.driver.open))
    assert not b.is_open


@pytest.mark.parametrize("limits", [{"effort": 4.1}, {"velocity": 51.0}], ids=["effort", "velocity"])
def test_limits_beyond_the_drives_own(bench, limits, said):
    said(refused(bench(JOINT(id=3, ratio=2.0), **limits).driver.open))


def test_the_drive_keeps_the_guards_limit_while_it_is_open(bench):
    b = bench(JOINT(id=3, ratio=2.0), effort=1.0)
    b.driver.open()
    assert b.node().value(0x607200) == 750  # 0.5 N·m of 0.667 rated, rounded up
    b.driver.close()
    assert b.node().value(0x607200) == 2999 and not b.is_open


def test_velocity_units_other_than_increments(bench):
    b = bench(JOINT(id=3, cpr=1000), mode="velocity")
    b.node().values[0x60A900] = 0xFDB44700  # thousandths of a turn per minute
    b.start().write(velocity=2 * math.pi)
    assert b.node().value(0x60FF00) == 60_000


@pytest.mark.parametrize("pause", [0, 120, 400])
def test_drives_that_a_killed_program_left_on_are_switched_off(running, pause):
    b = running(mode="velocity")
    b.cycle(200, velocity=20.0)
    b.node().values[0x608500] = 20_000  # a long ramp
    b.run(pause)
    b.again()
    b.start()
    assert b.states == [profile.ENABLED]


@pytest.mark.parametrize("mode", sorted(cia402.MODES))
def test_enable_holds_where_the_motor_is(bench, mode):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096), mode="position")
    b.motors[0].position = 1.0
    b.driver.open()
    b.sent.clear()
    b.driver.enable(mode)
    node = b.node()
    assert b.states == [profile.ENABLED] * 2
    assert node.mode == {"effort": 10, "velocity": 9, "position": 8}[mode]
    assert node.value(0x101601) == 127 << 16 | 100
    assert (node.value(0x102901), node.value(0x600700), node.value(0x605E00)) == (1, 1, 2)
    b.run(20)
    assert b.motors[0].position == pytest.approx(1.0, abs=1e-3)
    # the watchdog is set before anything is switched on
    consumer = next(k for k, f in enumerate(b.sent) if f.data[:4] == bytes.fromhex("23 16 10 01"))
    shutdown = next(k for k, f in enumerate(b.sent) if f.id == 0x201 and f.data[:1] == b"\x06")
    assert consumer < shutdown


def test_what_cannot_be_enabled(bench, said):
    b = bench(JOINT(id=3))
    b.driver.open()
    original = b.emulator.handle

    def without_power(frame, t_ns):  # an enable input that is open
        shut = frame.id == 0x203 and frame.data[0] in (7, 15)
        return original(frame._replace(data=b"\x06" + frame.data[1:]) if shut else frame, t_ns)

    b.emulator.handle = without_power
    said(refused(b.driver.enable, "effort"))
    b.hears = lambda frame: False
    said(refused(b.driver.enable, "effort"))


def test_a_fault_is_not_cleared_silently(bench, said):
    b = bench(JOINT(id=3))
    b.driver.open()
    b.motors[0].fault_cause = "encoder"
    b.run(1)
    b.motors[0].fault_cause = ""
    said(refused(b.driver.enable, "effort"))
    assert b.states == [profile.FAULT]
    b.driver.clear()
    b.driver.enable("effort")
    b.motors[0].fault_cause = "encoder"
    b.run(1)
    said(refused(b.driver.clear))


@pytest.fixture
def tripped(running):
    """A drive with a fault whose heartbeats were missing later on."""
    b = running()
    b.cycle(3)
    b.motors[0].fault_cause = "overcurrent"
    b.run(1)
    b.motors[0].fault_cause = ""
    return b


@pytest.mark.parametrize("killed", ["", "killed", "without history"])
def test_a_missed_heartbeat_does_not_hide_the_fault_before_it(tripped, killed):
    b = tripped
    if not killed:
        b.driver.stop()
    b.run(300)
    assert b.node().value(0x603F00) == faults.HEARTBEAT
    if killed:  # the next program comes
        if killed == "without history":
            b.node().values[0x100300] = 0
        b.again()
        b.driver.open()
    named = "fault without an error code" if killed == "without history" else "over current (drive error 0x2310)"
    assert refused(b.driver.enable, "effort").startswith(f"joint 'j0': fault: {named}")
    assert b.states == [profile.FAULT]
    b.driver.clear()
    b.driver.enable("effort")


def test_a_fault_without_history_keeps_its_code(tripped):
    tripped.node().values[0x100300] = 0
    assert setup.standing_error(tripped.driver._client, 1) == faults.OVERCURRENT


def test_a_fault_while_switching_on(bench, said):
    b = bench(JOINT(id=3))
    b.driver.open()
    original = b.emulator.handle

    def failing(frame, t_ns):
        if frame.id == 0x203:
            b.motors[0].fault_cause = "overcurrent"
        return original(frame, t_ns)

    b.emulator.handle = failing
    said(refused(b.driver.enable, "effort"))
    assert b.efforts == [0]


def test_another_object_of_the_temperature(bench, said):
    b = bench(JOINT(id=3, temperature=0x222201))
    b.driver.open()
    b.motors[0].temperature = 40.0
    assert b.read().temperature == pytest.approx([40.0])
    b.node().temperature = 0x320101
    b.driver.close()
    said(refused(b.driver.open))


def test_objects_that_a_drive_lacks(bench, without, said):
    without(0x60A900)
    said(refused(bench(JOINT(id=3, cpr=1000), mode="velocity").driver.open))
    b = bench(JOINT(id=3, cpr=1000, velocity_unit="counts/s"), mode="velocity").start()
    b.write(velocity=2 * math.pi)
    assert b.node().value(0x60FF00) == 1000
    without(0x101601)
    said(refused(bench(JOINT(id=3)).driver.open))


HOMING = cia402.Homing(method=34, slow=1.0, timeout=0.5)


def fails(b):
    b.motors[0].fault_cause = "overcurrent"


def breaks_off(b):
    b.node().homing, b.node().bits = False, profile.HOMING_ERROR


def is_stopped(b):
    b.driver.stop()


@pytest.mark.parametrize("change", [fails, breaks_off, is_stopped, None])
def test_homing_that_does_not_end(bench, change, said):
    b = bench(JOINT(id=3, cpr=4096, homing=HOMING))
    b.driver.open()
    process = b.emulator.process

    def meanwhile(t_ns):
        if b.node().homing and change is not None:
            b.emulator.process = process
            change(b)
        return process(t_ns)

    b.emulator.process = meanwhile
    said(refused(b.driver.enable, "effort"))
    b.run(20)
    assert b.states[0] in (profile.DISABLED, profile.FAULT) and b.efforts == [0]


def test_a_method_of_homing_that_the_drive_lacks(bench, said):
    b = bench(JOINT(id=3, homing=cia402.Homing(method=36)))
    b.driver.open()
    said(refused(b.driver.enable, "effort"))


@pytest.mark.parametrize("mode", ["position", "effort"])
def test_homing(running, mode):
    b = running(JOINT(id=3, cpr=4096, homing=cia402.Homing(method=34, search=3.0, slow=20.0, timeout=2.0)), mode=mode)
    assert b.motors[0].position >= 2 * math.pi
    assert b.node().value(0x609902) == round(20.0 * 4096 / (2 * math.pi))
    assert b.read().position == pytest.approx([b.motors[0].position - 2 * math.pi], abs=2e-3)


def test_a_drive_that_lost_its_power_is_set_up_again(running):
    b = running(effort=1.0)
    b.cycle(3)
    b.emulator.reset(b.t_ns)
    assert b.cycle(3).fault.tolist() == [faults.RESTARTED]
    b.driver.enable("effort")
    assert b.cycle(3).fault.tolist() == [0]
    assert b.node().value(0x607200) == 1500


def process_data_to_unmapped_drives(b) -> list[str]:
    """What reaches a drive as process data, SYNC or a command to operate before it has the driver's PDOs."""
    objects = (*process_data.RPDO_OBJECTS["position"], *process_data.TPDO_OBJECTS)
    wanted, found = [[len(each), *each] for each in objects], []

    def mapped(node) -> bool:
        keys, pdos = (0x160000, 0x160100, 0x1A0000, 0x1A0100), (0x140000, 0x140100, 0x180000, 0x180100)
        real = [[node.value(key + k) for k in range(1 + node.value(key))] for key in keys]
        return real == wanted and all(node.value(key + 1) >> 31 == 0 and node.value(key + 2) == 1 for key in pdos)

    def checking(frame):
        cyclic = frame.id == codec.SYNC_ID or 0x200 <= frame.id < 0x580
        starts = frame.id == codec.NMT and frame.data[0] == codec.START
        if frame.id == codec.NMT and frame.data[0] == codec.PRE_OPERATIONAL:
            found.append("prepared")
        if (cyclic or starts) and not all(mapped(node) for node in b.emulator.nodes):
            found.append(f"{frame.id:03X} {frame.data.hex()}")
        return True

    b.hears = checking
    return found


def test_drives_get_no_process_data_before_all_of_them_are_mapped(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096), mode="position")
    found = process_data_to_unmapped_drives(b)
    b.start().cycle(3)
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


def test_a_drive_that_missed_the_command_to_operate_gets_it_again(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096))
    b.driver.open()
    missed = []

    def hears(frame):
        lost = frame.id == codec.NMT and frame.data == bytes((codec.START, 2)) and not missed
        return not (lost and missed.append(frame) is None)

    b.hears = hears
    b.driver.enable("effort")
    assert missed and b.states == [profile.ENABLED] * 2
