"""The cycle of the driver of Dynamixel drives: opening, modes, watchdog and faults."""

from collections.abc import Callable

import pytest

from cosim.drivers import dynamixel
from cosim.drivers.dynamixel import codec, cyclic_frames, faults
from cosim.drivers.dynamixel import tables as t
from cosim.drivers.transport import estimate
from cosim.errors import RunError
from tests.drivers.dynamixel.driver_bench import Bench
from tests.kit.clock import MS


def test_open_leaves_motors_off_and_measures_them(bench: Callable[..., Bench]) -> None:
    b = bench()
    for k, rotor in enumerate(b.rotors):
        rotor.position = 0.5 * k
    b.emulator.reset(b.t_ns)
    for node in b.nodes:
        node.put(t.TORQUE_ENABLE, 1)
    b.driver.open()
    assert b.torques() == [False] * 3
    state = b.read()
    assert state.position == pytest.approx([0.0, 0.5, 1.0], abs=8e-4)
    assert state.fault.tolist() == [0, 0, 0]
    assert state.temperature.tolist() == [25, 25, 25]
    assert 0 < state.t_ns <= b.t_ns


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_what_a_watchdog_does_after_the_last_command_of_a_killed_program(
    bench: Callable[..., Bench], mode: str
) -> None:
    b = bench(1, mode=mode).start()
    rotor = b.rotors[0]
    for _ in range(300):
        b.run(1, velocity=1.5, position=1.5 * (b.t_ns * 1e-9), effort=0.0, kp=0.0, kd=0.5)
    fast = rotor.velocity
    assert fast > 1.0
    b.wait(b.t_ns + 120 * MS)
    assert b.nodes[0].get(t.BUS_WATCHDOG) == t.TRIPPED
    if mode == "effort":  # it coasts
        assert rotor.effort == 0.0
    else:
        b.wait(b.t_ns + 1500 * MS)
        assert b.torques() == [True] and abs(rotor.velocity) < 0.02 * fast


def test_effort(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.write(effort=0.5)
    b.wait(b.t_ns + MS)
    quantum = 2.69e-3 * 1.783
    assert [rotor.effort for rotor in b.rotors] == pytest.approx([0.5] * 3, abs=quantum / 2)
    b.wait(b.t_ns + MS)
    assert b.read().effort == pytest.approx([0.5] * 3, abs=quantum / 2)
    state = b.run(1000, effort=0.0, position=1.0, kp=2.0, kd=0.3)
    assert state.position == pytest.approx([1.0] * 3, abs=4e-3)
    assert b.driver.report()[0] == pytest.approx(
        {"joint": "j0", "saturated": 0, "limit": 1193 * quantum, "resolution": quantum}
    )


def test_efforts_beyond_the_current_limit_are_clipped_and_counted(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.write(effort=-100.0)
    assert [node.get(t.GOAL_CURRENT) for node in b.nodes] == [-1193] * 3
    assert [row["saturated"] for row in b.driver.report()] == [1, 1, 1]


def test_velocity(bench: Callable[..., Bench]) -> None:
    b = bench(mode="velocity").start()
    assert b.run(1000, velocity=-1.5).velocity == pytest.approx([-1.5] * 3, abs=0.03)
    b.write(velocity=100.0)
    assert [node.get(t.GOAL_VELOCITY) for node in b.nodes] == [200] * 3


def test_position(bench: Callable[..., Bench]) -> None:
    b = bench(mode="position", limits=(-2.0, 2.0, 2.0, 1.0)).start()
    assert [node.mode for node in b.nodes] == [t.CURRENT_POSITION_MODE] * 3
    bound = int(1.0 / (2.69e-3 * 1.783))
    assert [node.get(t.GOAL_CURRENT) for node in b.nodes] == [bound] * 3
    assert b.run(1500, position=0.8).position == pytest.approx([0.8] * 3, abs=4e-3)
    b.write(effort=0.1)
    assert b.driver.report()[0] == {"joint": "j0", "saturated": 1, "limit": 0.0, "resolution": 0.0}


def test_wiring(bench: Callable[..., Bench]) -> None:
    b = bench(wiring={"direction": -1, "ratio": 2.0, "zero": 0.25}, limits=(-0.5, 1.0, 1.0, 4.0)).start()
    b.write(effort=0.5)
    b.wait(b.t_ns + 50 * MS)
    assert [rotor.effort for rotor in b.rotors] == pytest.approx([-0.25] * 3, abs=3e-3)
    state, rotor = b.read(), b.rotors[0]
    assert state.position[0] == pytest.approx(0.25 - rotor.position / 2, abs=1e-3)
    assert state.velocity[0] == pytest.approx(-rotor.velocity / 2, abs=0.03)
    assert state.effort[0] == pytest.approx(0.5, abs=0.01)


def test_the_turn_is_the_one_within_the_limits(bench: Callable[..., Bench]) -> None:
    for mode in ("effort", "position"):
        b = bench(mode=mode)
        for rotor in b.rotors:
            rotor.position = -0.5
        b.emulator.reset(b.t_ns)  # an encoder shows 2π − 0.5 after power-on
        b.start()
        assert b.nodes[0].get(t.PRESENT_POSITION) == pytest.approx(4096 - 326)
        assert b.read().position == pytest.approx([-0.5] * 3, abs=1e-3)
        assert b.run(100, position=-0.5, kp=1.0).position == pytest.approx([-0.5] * 3, abs=2e-3)


def test_enabling_holds_the_measured_position(bench: Callable[..., Bench]) -> None:
    for mode in ("effort", "velocity", "position"):
        b = bench(mode=mode)
        for rotor in b.rotors:
            rotor.position = 1.0
        b.start()
        b.wait(b.t_ns + 30 * MS)
        assert [rotor.position for rotor in b.rotors] == pytest.approx([1.0] * 3, abs=2e-3), mode
        order = [item[8] for item in b.sent if item[7] == codec.WRITE and item[4] == 1]
        assert order.index(t.BUS_WATCHDOG.address) < order.index(cyclic_frames.GOALS[mode].address)
        assert b.nodes[0].get(t.BUS_WATCHDOG) == 4  # of 5: one is for reads that come late


def test_unchanged_eeprom_registers_are_not_written(bench: Callable[..., Bench]) -> None:
    b = bench(mode="velocity").start()
    b.driver.stop()
    b.sent.clear()
    b.driver.enable("velocity")
    assert all(item[8] >= t.EEPROM_END for item in b.sent if item[7] == codec.WRITE)


def test_one_request_and_one_packet_of_goals_per_cycle(bench: Callable[..., Bench]) -> None:
    for fast, instruction in ((None, codec.FAST_SYNC_READ), (True, codec.FAST_SYNC_READ), (False, codec.SYNC_READ)):
        b = bench(fast=fast).start()
        b.sent.clear()
        b.run(1)
        assert [item[7] for item in b.sent] == [instruction, codec.SYNC_WRITE, instruction]
        traffic = dynamixel.traffic(b.params, b.context)
        assert [len(item) for item in traffic.out] == [len(b.sent[1]), len(b.sent[0])]
        assert traffic.back == [bytes(len(a)) for a in traffic.back] or len(traffic.back) == (
            1 if instruction == 0x8A else 3
        )
        assert 0.1 < estimate(traffic, b.params.port, 1e-3) < 1
        assert b.out.t_ns > 0


def test_older_firmware_gets_the_slower_request(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.nodes[1].put(t.FIRMWARE, 44)
    b.start()
    b.sent.clear()
    b.read()
    assert b.sent[0][7] == codec.SYNC_READ


def test_without_commands_drives_stop_although_they_are_read(bench: Callable[..., Bench]) -> None:
    b = bench(mode="velocity").start()
    b.run(300, velocity=1.0)
    begin, fault_ns = b.t_ns, 0
    while b.t_ns < begin + 200 * MS:
        fault = b.read().fault[0]
        tripped = b.nodes[0].get(t.BUS_WATCHDOG) == t.TRIPPED
        assert tripped or b.t_ns - begin <= 101 * MS
        fault_ns = fault_ns or (b.t_ns if fault else 0)
        b.wait(b.t_ns + MS)
    assert b.out.fault.tolist() == [faults.WATCHDOG] * 3
    assert fault_ns - begin < 130 * MS
    assert b.out.velocity == pytest.approx([0.0] * 3, abs=0.2)  # the drive's loop is still swinging
    b.driver.enable("velocity")
    assert b.run(200, velocity=1.0).fault.tolist() == [0, 0, 0]


def test_a_slow_period_with_a_longer_watchdog(bench: Callable[..., Bench]) -> None:
    b = bench(period=0.05, watchdog=0.2).start()
    for _ in range(30):
        b.driver.read(b.out, b.t_ns + 10 * MS)
        b.write()
        b.wait(b.t_ns + 50 * MS)
    assert b.out.fault.tolist() == [0, 0, 0]


def test_faults_are_reported_and_only_a_reboot_clears_them(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.rotors[1].fault_cause = "overcurrent"
    assert b.run(2).fault.tolist() == [0, 0x20, 0]
    words = b.driver.describe_fault(1, 0x20)
    assert words == "overload (drive error 0x20); reduce the load, then reboot the drive"
    with pytest.raises(RunError) as error:
        b.driver.enable("effort")
    assert str(error.value) == f"joint 'j1': fault: {words}"
    assert b.torques() == [False] * 3
    b.rotors[1].fault_cause = ""
    b.send(codec.packet(2, codec.REBOOT), 0)
    b.driver.enable("effort")
    assert b.run(2).fault.tolist() == [0, 0, 0]


def test_a_drive_that_switches_off_is_a_fault(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.nodes[0].put(t.TORQUE_ENABLE, 0)
    b.nodes[2].reset(b.t_ns)
    assert b.run(1).fault.tolist() == [faults.OFF, 0, faults.RESTARTED]
    b.driver.stop()
    b.driver.enable("effort")  # sets up what was lost
    assert b.run(1).fault.tolist() == [0, 0, 0]


def test_every_fault_has_a_description(bench: Callable[..., Bench]) -> None:
    describe = bench().driver.describe_fault
    assert describe(0, 0) == ""
    assert describe(0, 0x05) == (
        "input voltage and over temperature (drive error 0x05); "
        "check the supply, let it cool down, then reboot the drive"
    )
    assert describe(0, 0x40) == "unknown error (drive error 0x40); see the manufacturer's manual, then reboot the drive"
    assert describe(0, -1).startswith("no command in time")
    assert describe(0, -2) == "the drive switched its torque off by itself; check its supply"
    assert describe(0, -3).startswith("the drive was restarted and lost its settings")
