"""The cycle of the driver of CiA 402 drives: commands, feedback, faults and the watchdog."""

import struct

import numpy as np
import pytest

from cosim.plugins.drivers import cia402
from cosim.plugins.drivers.cia402 import codec, faults, profile
from cosim.plugins.drivers.cia402.codec import SYNC
from cosim.plugins.drivers.transport import CanFrame, estimate
from tests.drivers.bench import refused
from tests.drivers.cia402.conftest import BUS, JOINT
from tests.kit.clock import MS


def test_effort_with_the_gains_of_the_host(running):
    b = running(JOINT(id=1, cpr=4096, direction=-1, ratio=4.0, zero=0.5), JOINT(id=2, cpr=4096))
    b.read()
    b.write(kp=0.4, kd=0.01, position=1.0)
    b.run(1)
    # 0.4 (1 − 0.5) = 0.2 N·m at the joint: −0.05 at a drive that counts against it behind a gear of 4
    assert b.efforts == pytest.approx([-0.05, 0.4], abs=7e-4)
    assert b.twice().effort == pytest.approx([0.2, 0.4], abs=4e-3)
    b.cycle(600)
    assert b.out.position[0] > 0.6 and b.out.position[1] == pytest.approx(1.0, abs=0.03)


def test_position_with_feedforward(running):
    b = running(JOINT(id=1, cpr=4096, ratio=2.0), mode="position")
    b.write(position=0.5, velocity=0.25, effort=0.667)
    assert [b.node().value(key) for key in (0x607A00, 0x60B100, 0x60B200)] == [652, 326, 500]
    b.cycle(600, velocity=0.0, effort=0.0)
    assert b.out.position == pytest.approx([0.5], abs=2e-3)


def test_other_modes_than_the_one_it_was_opened_for(bench):
    b = bench(mode="position").start("velocity")
    assert b.cycle(300, velocity=-3.0).velocity == pytest.approx([-3.0], abs=0.05)
    b.driver.enable("effort")
    b.write(effort=0.1)
    b.run(1)
    assert b.efforts == pytest.approx([0.1], abs=1e-3)


def test_a_cycle_on_the_wire(running):
    b = running(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096), mode="position")
    b.read()
    b.sent.clear()
    b.write()
    assert [f.id for f in b.sent] == [0x201, 0x301, 0x202, 0x302, 0x77F, 0x80]
    assert [f.id for _, f in b.queue] == [0x181, 0x281, 0x182, 0x282]
    b.twice()  # without a command since then: sends a request
    assert b.sent[6:] == [SYNC]


def test_clipped_feedforward_is_reported(running):
    b = running(JOINT(id=1, cpr=4096, ratio=3.0), effort=3.0)
    b.write(effort=100.0)
    b.run(1)
    assert b.efforts == pytest.approx([1.0], abs=1e-3)  # the guard's 3 N·m behind the gear, in 6072h
    limit, resolution = pytest.approx(2.999 * 0.667 * 3.0), pytest.approx(0.000667 * 3.0)
    assert b.driver.report() == [{"joint": "j0", "saturated": 1, "limit": limit, "resolution": resolution}]


def test_late_answers_do_not_answer_the_next_command(running):
    b = running()
    b.read()
    b.write()
    held = [b.queue.popleft() for _ in range(len(b.queue))]
    before, position, start = b.out.t_ns, b.out.position.copy(), b.t_ns
    b.read()
    assert b.t_ns == start + MS  # waited until the deadline
    assert (b.out.t_ns, b.out.position) == (before, position)
    b.queue.extend(held)
    b.motors[0].position = 1.0
    b.write()
    fresh = [b.queue.pop() for _ in held][::-1]
    start = b.t_ns
    b.read()
    assert b.t_ns == start + MS
    b.queue.extend(fresh)
    assert b.read().position == pytest.approx([1.0], abs=2e-3)


def test_drives_without_any_feedback(bench):
    b = bench(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096))
    b.driver.open()
    b.motors[0].position = 2.0
    b.out.position[:] = 9.0
    b.emulator.nodes = b.emulator.nodes[:1]
    assert b.read().position == pytest.approx([2.0, 9.0], abs=2e-3) and b.out.t_ns == 0


def test_frames_that_cannot_be_decoded_are_counted(running):
    b = running()
    b.read()
    b.arrive(CanFrame(cob_id, b"\1\2\3") for cob_id in (0x181, 0x281, 0x81, 0x701, 0x182, 0x7FF))
    b.arrive([CanFrame(0x181, b"\1", extended=True)])
    b.read()
    assert b.driver.lost == 4 and not b.out.fault.any()


def test_a_babbling_node_does_not_block_a_read(running):
    b = running()
    b.read()
    b.receive = lambda deadline: CanFrame(0x123, b"")
    b.read()


def test_open_to_stop_through_a_watchdog_trip(bench):
    b = bench(mode="velocity", watchdog=0.05).start()
    b.cycle(300, velocity=5.0)
    assert not b.out.fault.any() and b.out.velocity == pytest.approx([5.0], abs=0.1)
    b.run(48)
    assert b.states == [profile.ENABLED]
    b.run(100)  # without commands
    assert b.states == [profile.FAULT] and b.efforts == [0]
    assert abs(b.motors[0].velocity) < 1.5
    assert b.twice().fault.tolist() == [faults.HEARTBEAT]
    b.driver.clear()
    assert b.read().fault.tolist() == [0]
    b.driver.enable("velocity")
    assert not b.cycle(100).fault.any()
    b.driver.stop()
    assert b.states == [profile.QUICK_STOP]
    b.driver.close()
    b.run(200)
    assert b.states == [profile.DISABLED]  # its watchdog was cleared


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_after_the_last_command_of_a_killed_program_the_drive_brakes_on_its_ramp(running, mode):
    b = running(mode=mode, watchdog=0.05)
    motor = b.motors[0]
    for k in range(300):
        b.cycle(kd=0.1, velocity=5.0, position=5e-3 * k)
    fast = motor.velocity
    assert fast > 4.0
    b.run(52)
    assert b.states == [profile.REACTING] and motor.effort < 0.0
    b.run(150)
    assert b.states == [profile.FAULT] and motor.effort == 0.0
    assert abs(motor.velocity) < 0.2 * fast


def test_a_drive_without_stop_options_leaves_operational(running, without):
    without(0x600700)
    b = running()
    assert b.node().value(0x102901) == 0
    b.cycle(3)
    b.run(250)
    assert b.node().nmt == codec.PREPARED
    assert b.twice().fault.tolist() == [faults.HEARTBEAT]


def test_silence_between_two_runs_is_no_fault(running):
    b = running()
    b.cycle(3)
    b.driver.stop()
    b.run(500)
    assert b.states == [profile.FAULT]
    b.driver.enable("effort")
    assert not b.cycle(3).fault.any()


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
    assert b.twice().fault.tolist() == [code]
    assert b.driver.describe_fault(0, code).split(";")[0] == faults.DRIVER_CODES[code][0]


def test_a_fault_without_a_code(running):
    b = running()
    b.read()
    b.arrive([CanFrame(codec.TPDO + 1, struct.pack("<Hbi", 0x0208, 10, 0))])
    b.driver._drain()
    assert b.driver._fault_codes() == [faults.UNNAMED]


def test_an_emergency_that_is_only_a_warning(running):
    b = running()
    b.cycle(2)
    b.arrive([codec.emergency(1, 0x8110, 0x11)])
    assert b.cycle(2).fault.tolist() == [0]


# --- stopping and closing the driver of CiA 402 drives, and what the family adds to it ---


def test_stop_reaches_a_drive_that_takes_no_process_data(running):
    b = running()
    b.node().nmt = codec.PREPARED
    b.driver.stop()
    assert b.states == [profile.QUICK_STOP]


def without_sync(frames):
    return [(f.id, f.data.hex(" ")) for f in frames if f != SYNC]


@pytest.mark.parametrize(("stop", "word"), [("quick", "02 00"), ("off", "00 00")])
def test_the_command_that_stops_goes_out_as_process_data_and_by_sdo(running, stop, word):
    b = running(JOINT(id=1), JOINT(id=2), stop=stop)
    b.cycle(3, effort=0.1)
    b.sent.clear()
    t = b.t_ns
    b.driver.stop()
    assert b.t_ns == t  # without waiting
    assert without_sync(b.sent) == [
        (0x201, f"{word} 00 00"),
        (0x202, f"{word} 00 00"),
        (0x601, f"2b 40 60 00 {word} 00 00"),
        (0x602, f"2b 40 60 00 {word} 00 00"),
    ]
    assert b.sent[2] == SYNC  # at which the drives take it over
    assert b.node().state == (profile.QUICK_STOP if stop == "quick" else profile.DISABLED)


def moved(b, mode="velocity", speed=20.0):
    """The drive turns at about this speed [rad/s], held back by friction."""
    b.cmd.position[:], b.cmd.velocity[:], b.cmd.effort[:] = b.read().position, speed, 0.0
    for _ in range(500 if mode == "velocity" else 1200):
        if mode == "effort":
            b.cmd.effort[:] = 0.05 * (speed - b.out.velocity) + 1e-3 * speed
        if mode == "position":
            b.cmd.position += 1e-3 * speed
        b.cycle(1)
    assert b.out.velocity == pytest.approx([speed], rel=0.05) and not b.out.fault.any()


def trace(b, most=2000):
    """(velocity, effort) of every quarter of a ms until the drive is off."""
    rows = [(b.motors[0].velocity, b.motors[0].effort)]
    while b.node().state in profile.POWERED and len(rows) < 4 * most:
        b.run(0.25)
        rows.append((b.motors[0].velocity, b.motors[0].effort))
    return np.array(rows).T


@pytest.mark.parametrize("mode", sorted(cia402.MODES))
def test_a_motor_that_moves_is_led_to_a_standstill_before_it_is_off(running, mode):
    b = running(mode=mode, effort=1.5, watchdog=1.0)
    moved(b, mode)
    b.node().values[0x608500] = 65190  # 100 rad/s²: 0.2 s from this speed
    b.driver.stop()
    velocity, effort = trace(b)
    assert b.states == [profile.DISABLED]
    assert 0.2 < 0.25e-3 * velocity.size < 0.4
    assert np.abs(velocity - np.maximum(20.0 - 0.025 * np.arange(velocity.size), 0.0)).max() < 2.0
    assert abs(velocity[-1]) < 1.1  # the window of the emulated drive, a hundredth of its greatest velocity
    assert np.abs(np.diff(effort[:-1])).max() < 0.05  # of 1.5 N·m: no jump
    assert effort[-1] == 0.0
    b.run(50)
    assert b.efforts == [0.0] and not b.read().fault.any()


def test_a_load_is_held_during_the_ramp(running):
    """In effort mode too, where the velocity loop of the drive was not at work before."""
    b = running(watchdog=1.0)
    motor, pull = b.motors[0], 0.5
    ask = motor.request

    def loaded(effort):
        ask(effort)
        motor.requested, motor.effort = effort, motor.effort - pull

    motor.request = loaded
    b.cycle(500, kd=0.1, effort=pull)
    assert abs(motor.velocity) < 0.1
    place = motor.position
    b.node().values[0x606D00] = 0  # never slow enough: it holds on until its patience is over
    b.driver.stop()
    b.run(300)
    assert b.node().state in profile.POWERED
    assert motor.position == pytest.approx(place, abs=0.02)
    assert motor.requested == pytest.approx(pull, abs=0.01)


def test_a_drive_that_does_not_take_the_option_is_switched_off(running, without):
    without(0x605A00)
    b = running()
    b.sent.clear()
    b.driver.stop()
    assert without_sync(b.sent) == [(0x201, "00 00 00 00"), (0x601, "2b 40 60 00 00 00 00 00")]
    assert b.states == [profile.DISABLED]


@pytest.mark.parametrize("watchdog", [0.1, 1.0])
def test_closing_waits_for_the_end_of_the_ramp(running, watchdog):
    b = running(mode="velocity", watchdog=watchdog)
    moved(b)
    b.node().values[0x608500] = 26076  # 40 rad/s²: 0.5 s, longer than a watchdog
    t = b.t_ns
    b.driver.close()
    assert 490 * MS < b.t_ns - t < 800 * MS
    assert b.states == [profile.DISABLED] and b.node().errors == []
    assert abs(b.motors[0].velocity) < 1.1
    assert not b.is_open


def test_closing_waits_a_second_at_most(running):
    b = running(JOINT(id=1, cpr=4096), JOINT(id=2, cpr=4096), mode="velocity")
    b.cycle(300, velocity=20.0)
    for node in b.emulator.nodes:
        node.values[0x608500] = 652  # 20 s
    t = b.t_ns
    b.driver.close()
    assert 1000 * MS <= b.t_ns - t < 1200 * MS
    assert b.states == [profile.DISABLED] * 2 and b.efforts == [0.0, 0.0]
    assert [node.value(0x101601) for node in b.emulator.nodes] == [0, 0]


def test_closing_does_not_wait_for_drives_on_a_lost_connection(running):
    b = running()
    b.broken = True
    t = b.t_ns
    b.driver.close()
    assert b.t_ns == t


def enable(b):
    b.driver.enable("velocity")


def clear(b):
    b.driver.clear()


@pytest.mark.parametrize("action", [enable, clear])
def test_enabling_and_clearing_wait_for_the_end_of_the_ramp(running, action, said):
    b = running(mode="velocity")
    moved(b)
    b.node().values[0x608500] = 26076
    t = b.t_ns
    action(b)
    assert 490 * MS < b.t_ns - t < 900 * MS and b.node().errors == []
    enable(b)
    moved(b)
    b.node().values[0x608500] = 6519  # 2 s, which is too long: it is reported, and the ramp continues
    t = b.t_ns
    said(refused(action, b))
    assert b.t_ns - t < 1100 * MS and b.states == [profile.QUICK_STOP] and not b.driver.latched


@pytest.mark.parametrize("watchdog", [0.1, 3.0])
def test_a_drive_that_may_still_run_keeps_its_watchdog(running, watchdog):
    b = running(watchdog=watchdog)
    b.cycle(2)
    b.hears = lambda frame: frame.data[:4] != bytes.fromhex("2B 40 60 00") and frame.id != 0x201  # it is stuck
    b.sent.clear()
    b.driver.close()
    assert CanFrame(0x77F, b"\x05") not in b.sent  # a drive that does not obey is not fed
    if watchdog > 1.0:
        assert b.states == [profile.ENABLED]
        assert b.node().value(0x101601) == 127 << 16 | 3000
        b.run(3000)
    assert b.states == [profile.FAULT]


@pytest.mark.parametrize(("mode", "share"), [("effort", 0.83), ("position", 1.10)])
def test_traffic_is_what_a_cycle_sends(running, mode, share):
    b = running(*(JOINT(id=k + 1, temperature=0x320101) for k in range(2)), mode=mode)
    b.read()
    b.sent.clear()
    b.write()
    traffic = cia402.traffic(b.params, b.context)
    assert [(f.id, len(f.data)) for f in traffic.out] == [(f.id, len(f.data)) for f in b.sent]
    assert [(f.id, len(f.data)) for f in traffic.back] == [(f.id, len(f.data)) for _, f in b.queue]
    assert estimate(traffic, BUS, 1e-3) == pytest.approx(share, abs=0.01)


def test_the_id_of_this_program_is_that_of_a_drive(bench, said):
    said(refused(bench, JOINT(id=126, cpr=4096), JOINT(id=127, cpr=4096)))


def test_frames_buffered_between_reads(running):
    """A full buffer keeps what came first, and loses the answers to what is asked then."""
    b = running()
    b.driver.stop()
    b.read()
    b.spoil = lambda frame: (frame,) if len(b.queue) < 50 else ()
    b.run(10_000)
    assert len(b.queue) >= 50
    b.driver.enable("effort")
    assert b.cycle(5).fault[0] == 0
