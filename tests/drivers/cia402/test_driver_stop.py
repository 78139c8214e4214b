"""Stopping and closing the driver of CiA 402 drives, and what the family adds to it."""

import numpy as np
import pytest

from cosim.drivers import cia402
from cosim.drivers.cia402 import codec, profile
from cosim.drivers.cia402.codec import SYNC
from cosim.drivers.transport import CanFrame, estimate
from tests.drivers.bench import refused
from tests.drivers.cia402.conftest import BUS, JOINT
from tests.kit.clock import MS


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
