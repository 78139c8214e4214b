"""The driver of Dynamixel drives: opening, modes, watchdog, faults, lost and damaged packets."""

import pytest

from cosim.plugins.drivers import dynamixel
from cosim.plugins.drivers.dynamixel import codec, cyclic_frames, faults
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.transport import estimate
from tests.drivers.bench import refused
from tests.kit.clock import MS


def test_open_leaves_motors_off_and_measures_them(bench):
    b = bench()
    for k, motor in enumerate(b.motors):
        motor.position = 0.5 * k
    b.emulator.reset(b.t_ns)
    for node in b.nodes:
        node.put(t.TORQUE_ENABLE, 1)
    b.driver.open()
    assert b.torques == [False] * 3
    assert b.read().position == pytest.approx([0.0, 0.5, 1.0], abs=8e-4)
    assert b.faults == [0, 0, 0] and b.out.temperature.tolist() == [25, 25, 25]
    assert 0 < b.out.t_ns <= b.t_ns


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_what_a_watchdog_does_after_the_last_command_of_a_killed_program(bench, mode):
    b = bench(1, mode).start()
    (motor,) = b.motors
    for k in range(300):
        b.cycle(velocity=1.5, position=1.5e-3 * k, kd=0.5)
    fast = motor.velocity
    assert fast > 1.0
    b.run(120)
    assert b.get(t.BUS_WATCHDOG) == [t.TRIPPED]
    if mode == "effort":  # it coasts
        assert motor.effort == 0.0
    else:
        b.run(1500)
        assert b.torques == [True] and abs(motor.velocity) < 0.02 * fast


def test_effort(bench):
    b, quantum = bench().start(), 2.69e-3 * 1.783
    b.cycle(effort=0.5)
    assert b.efforts == pytest.approx([0.5] * 3, abs=quantum / 2)
    b.run(1)
    assert b.read().effort == pytest.approx([0.5] * 3, abs=quantum / 2)
    b.cycle(900, effort=0.0, position=1.0, kp=2.0, kd=0.3)
    assert b.out.position == pytest.approx([1.0] * 3, abs=4e-3)
    row = {"joint": "j0", "saturated": 0, "limit": 1193 * quantum, "resolution": quantum}
    assert b.driver.report()[0] == pytest.approx(row)
    b.write(effort=-100.0)  # beyond the current limit
    assert b.get(t.GOAL_CURRENT) == [-1193] * 3
    assert [row["saturated"] for row in b.driver.report()] == [1, 1, 1]


def test_velocity(bench):
    b = bench(1, "velocity").start()
    assert b.cycle(600, velocity=-1.5).velocity == pytest.approx([-1.5], abs=0.03)
    b.write(velocity=100.0)
    assert b.get(t.GOAL_VELOCITY) == [200]


def test_position(bench):
    b = bench(1, "position", limits=(-2.0, 2.0, 2.0, 1.0)).start()
    assert b.nodes[0].mode == t.CURRENT_POSITION_MODE
    assert b.get(t.GOAL_CURRENT) == [int(1.0 / (2.69e-3 * 1.783))]
    assert b.cycle(1000, position=0.8).position == pytest.approx([0.8], abs=4e-3)
    b.write(effort=0.1)
    assert b.driver.report()[0] == {"joint": "j0", "saturated": 1, "limit": 0.0, "resolution": 0.0}
    limitless = bench(1, "position", limits=(-float("inf"), *[float("inf")] * 3)).start()
    assert limitless.get(t.GOAL_CURRENT) == [1193]


@pytest.mark.parametrize("mode", ["effort", "position"])
def test_the_turn_is_the_one_within_the_limits(bench, mode):
    b = bench(1, mode)
    b.place_all(-0.5)  # an encoder shows 2π − 0.5 after power-on
    b.start()
    assert b.get(t.PRESENT_POSITION) == [4096 - 326]
    assert b.read().position == pytest.approx([-0.5], abs=1e-3)
    assert b.cycle(100, position=-0.5, kp=1.0).position == pytest.approx([-0.5], abs=2e-3)


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_enabling_holds_the_measured_position(bench, mode):
    b = bench(1, mode)
    b.place_all(1.0)
    b.start().run(30)
    assert b.motors[0].position == pytest.approx(1.0, abs=2e-3)
    order = [item[8] for item in b.sent if item[7] == codec.WRITE]
    assert order.index(t.BUS_WATCHDOG.address) < order.index(cyclic_frames.GOALS[mode][1].address)
    assert b.get(t.BUS_WATCHDOG) == [4]  # of 5: one is for reads that come late
    b.driver.stop()
    b.sent.clear()
    b.driver.enable(mode)  # unchanged EEPROM registers are not written
    assert all(item[8] >= t.EEPROM_END for item in b.sent if item[7] == codec.WRITE)


@pytest.mark.parametrize(
    ("fast", "instruction"), [(None, codec.FAST_SYNC_READ), (True, codec.FAST_SYNC_READ), (False, codec.SYNC_READ)]
)
def test_one_request_and_one_packet_of_goals_per_cycle(bench, fast, instruction):
    b = bench(fast=fast).start()
    b.read()
    b.sent.clear()
    b.cycle(2)
    assert [item[7] for item in b.sent] == [codec.SYNC_WRITE, instruction] * 2
    traffic = dynamixel.traffic(b.params, b.context)
    assert [len(item) for item in traffic.out] == [len(item) for item in b.sent[:2]]
    assert len(traffic.back) == (3 if fast is False else 1)
    assert 0.1 < estimate(traffic, b.params.port, 1e-3) < 1
    assert b.out.t_ns > 0


def test_older_firmware_gets_the_slower_request(bench):
    b = bench()
    b.nodes[1].put(t.FIRMWARE, 44)
    b.start()
    b.sent.clear()
    b.read()
    assert b.sent[0][7] == codec.SYNC_READ


def test_without_commands_drives_stop_although_they_are_read(bench):
    b = bench(mode="velocity").start()
    b.cycle(300, velocity=1.0)
    begin, fault_ns = b.t_ns, 0
    while b.t_ns < begin + 200 * MS:
        fault = b.read().fault[0]
        assert b.get(t.BUS_WATCHDOG)[0] == t.TRIPPED or b.t_ns - begin <= 101 * MS
        fault_ns = fault_ns or (b.t_ns if fault else 0)
        b.run(1)
    assert b.faults == [faults.WATCHDOG] * 3 and fault_ns - begin < 130 * MS
    assert b.out.velocity == pytest.approx([0.0] * 3, abs=0.2)  # the drive's loop is still swinging
    b.driver.enable("velocity")
    assert not b.cycle(200, velocity=1.0).fault.any()


def test_a_slow_period_with_a_longer_watchdog(bench):
    b = bench(period=0.05, watchdog=0.2).start()
    for _ in range(30):
        b.read(10)
        b.write()
        b.run(50)
    assert b.faults == [0, 0, 0]


def test_faults_are_reported_and_only_a_reboot_clears_them(bench, said):
    b = bench().start()
    b.motors[1].fault_cause = "overcurrent"
    assert b.cycle(2).fault.tolist() == [0, 0x20, 0]
    said(refused(b.driver.enable, "effort"))
    assert b.torques == [False] * 3
    b.motors[1].fault_cause = ""
    b.send(codec.packet(2, codec.REBOOT), 0)
    b.driver.enable("effort")
    assert not b.cycle(2).fault.any()


def test_a_drive_that_switches_off_is_a_fault(bench):
    b = bench().start()
    b.nodes[0].put(t.TORQUE_ENABLE, 0)
    b.nodes[2].reset(b.t_ns)
    assert b.cycle(2).fault.tolist() == [faults.OFF, 0, faults.RESTARTED]
    b.driver.stop()
    b.driver.enable("effort")  # sets up what was lost
    assert not b.cycle(1).fault.any()


def test_faults_in_words(bench, said):
    describe = bench(1).driver.describe_fault
    said(describe(0, code) for code in (0, 0x05, 0x20, 0x40, faults.WATCHDOG, faults.OFF, faults.RESTARTED))


def test_a_drive_that_does_not_switch_on(bench, said):
    b = bench()
    b.driver.open()
    change = b.nodes[1].change
    b.nodes[1].change = lambda register, value: change(register, 0 if register == t.TORQUE_ENABLE else value)
    b.delay_ns = 5 * MS
    said(refused(b.driver.enable, "effort"))
    assert b.torques == [False] * 3


@pytest.mark.parametrize("fast", [True, False])
def test_the_last_values_of_a_silent_drive_are_kept(bench, fast):
    b = bench(fast=fast).start()
    old = b.cycle(1).t_ns
    b.motors[0].position, b.motors[1].position = 0.5, 0.7
    b.emulator.nodes = b.nodes[:1] + b.nodes[2:]
    b.run(1)
    # the blocks before it in the chain are valid
    assert b.read().position == pytest.approx([0.5, 0.0, 0.0], abs=1e-3) and b.out.t_ns == old


def test_a_read_ends_by_its_deadline_and_late_answers_are_discarded(bench):
    b = bench().start()
    old = b.cycle(1).t_ns
    b.delay_ns = 5 * MS
    b.motors[0].position = 1.0  # measured immediately, answered later
    b.run(1)
    begin = b.t_ns
    b.read()
    assert (b.t_ns, b.out.t_ns) == (begin + MS, old)
    b.motors[0].position, b.delay_ns = 0.2, 20_000
    b.run(1)
    for _ in range(25):
        b.write()
        assert b.read().position[0] != pytest.approx(1.0, abs=0.1)
    assert b.out.position[0] == pytest.approx(0.2, abs=1e-3)
    b.sent.clear()
    b.write()
    b.read(0)  # with a deadline in the past nothing is requested
    assert [item[7] for item in b.sent] == [codec.SYNC_WRITE]


def test_damaged_packets_are_counted_and_dropped(bench):
    b = bench().start()
    old, lost = b.cycle(1).t_ns, b.driver.lost
    b.spoil = lambda answer: (answer[:20] + bytes((answer[20] ^ 1,)) + answer[21:],)
    assert b.cycle(1).t_ns == old and b.driver.lost > lost
    b.spoil = lambda answer: (b"\xff\xff" + answer[:30],)
    b.cycle(1)
    b.spoil = lambda answer: (answer[:7], answer[7:8], answer[8:])
    assert b.cycle(30).t_ns > old and b.faults == [0, 0, 0]


def mistake(b) -> str:
    """Why it cannot be opened."""
    what = refused(b.driver.open)
    assert not b.is_open and not any(b.torques)
    return what


def test_no_drive_answers(bench, said):
    b = bench()
    b.emulator.nodes = b.nodes[:1]
    begin = b.t_ns
    said(mistake(b))
    assert b.t_ns - begin < 1000 * MS


@pytest.mark.parametrize("number", [1030, 29, 1200, 1220, 2000])
def test_another_model(bench, number, said):
    """A known one; MX-28; XL330-M288 and XC330-T288, with 1 mA per count; PH42."""
    b = bench(1)
    b.nodes[0].put(t.MODEL_NUMBER, number)
    said(mistake(b))


SETTINGS = {
    "no bus watchdog": (t.FIRMWARE, 37),
    "no fast sync read": (t.FIRMWARE, 44, {"fast": True}),
    "silent": (t.RETURN_LEVEL, 0),
    "silent but for reads": (t.RETURN_LEVEL, 1),
    "slow answers": (t.RETURN_DELAY_TIME, 250, {"return_delay": 1e-5}),
    "torque by goal": (t.DRIVE_MODE, 9),
    "slave of another": (t.DRIVE_MODE, 2),
    "effort limit": (t.CURRENT_LIMIT, 500),
    "velocity limit": (t.VELOCITY_LIMIT, 50),
}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_settings_that_do_not_fit(bench, setting, said):
    register, value, *options = setting
    b = bench(**dict(*options))
    for node in b.nodes:
        node.put(t.RETURN_DELAY_TIME, 0)
    b.nodes[2].put(register, value)
    what = mistake(b)
    assert what.startswith("rig.yaml:7 joints.j2.id: ")
    said(what)


def test_what_does_not_fit_the_rig(bench, said):
    said(refused(lambda: bench(watchdog=0.03)))
    said(refused(lambda: bench(wiring={"model": "XL430-W250"})))


def test_a_model_without_current(bench, said):
    b = bench(1, "position", wiring={"model": "XL430-W250"}).start()
    assert b.nodes[0].mode == t.EXTENDED_MODE
    assert b.cycle(1000, position=0.4).position == pytest.approx([0.4], abs=4e-3)
    said(refused(b.driver.enable, "effort"))
