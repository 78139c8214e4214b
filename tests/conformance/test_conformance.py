"""What every driver and every emulated drive must do, for every family that there is, through real bytes."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cosim.drivers.common.motor import FAULT_CAUSES
from cosim.drivers.transport import CanBus, CanFrame, CanParams, ConnectionLost, now
from cosim.errors import InputError, InputErrors, RunError
from cosim.rig.sections.rig_spec import read_rig

from .families import JOINTS, SCALES, START, Bench, addresses, cases, folders, lacking, rig, section, write_rig
from .rules import enforced, rule

every = pytest.mark.parametrize("case", cases(), ids=str)
on_frames = pytest.mark.parametrize("case", [case for case in cases() if case.line != "pty"], ids=str)
MS = 1_000_000
PUSH = 0.02  # N·m, moves a joint at about 0.6 and 2.5 rad/s
QUANTUM = 2e-3  # rad: no encoder is coarser
LIMIT = 0.2  # N·m of the guard, at either drive
STOPPING = 1000  # ms of the drives' time in which one that stops is off, on whatever ramp

# drives with another model or firmware: what of joint b is another in their rig, what is done to the emulator, words of
# the refusal
STRANGERS: dict[str, tuple[dict[str, Any], Callable[[Any, Any], object], str]] = {
    "cia402": ({"vendor": 77}, lambda emulator, patch: None, "vendor 0x4D"),
    "dynamixel": ({"model": "XM540-W270"}, lambda emulator, patch: None, "is XM540-W270, not XM430-W350"),
    "moteus": ({}, lambda emulator, patch: _of_another_map(patch), "register map 3"),
    "odrive": ({}, lambda emulator, patch: _of_another_firmware(emulator), "firmware 0.5.6"),
}


@pytest.fixture
def bench(case, tmp_path):
    with Bench(case, tmp_path) as made:
        yield made


# --- families -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", folders())
def test_a_folder_with_a_codec_or_a_driver_is_a_family(name):
    assert lacking(name) == ""
    assert any(case.family == name for case in cases())


def test_two_buses_of_one_machine_do_not_hear_each_other():
    channels = ("239.255.7.1", "239.255.7.2", "239.255.7.1")
    buses = [CanBus(CanParams("udp_multicast", channel), lambda *keys: None) for channel in channels]
    try:
        for bus in buses:
            bus.open()
        buses[0].send(CanFrame(1, b"here"), now() + 1000 * MS)
        heard = buses[2].receive(now() + 5000 * MS)
        assert heard is not None and heard.data == b"here"
        assert buses[1].receive(now() + 50 * MS) is None
    finally:
        for bus in buses:
            bus.close()


# --- from opening to closing ------------------------------------------------------------------------------


@every
@rule(1)
def test_open_leaves_the_motors_off_and_measures_their_positions(bench):
    driver = bench.open()
    assert driver.joints == JOINTS
    assert driver.modes == bench.case.module.MODES
    np.testing.assert_allclose(bench.out.position, START, atol=QUANTUM)
    np.testing.assert_allclose(bench.out.velocity, 0.0, atol=1e-3)
    assert not bench.out.fault.any()
    bench.off()
    np.testing.assert_allclose(bench.truth[0], START, atol=1e-9)


@every
@rule(2)
def test_nothing_is_written_before_the_motors_are_on(bench):
    with pytest.raises(RunError):
        bench.write(effort=PUSH)
    bench.open()
    with pytest.raises(RunError, match="are off; enable"):
        bench.write(effort=PUSH)
    bench.off()


@every
@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
@rule(3)
def test_a_mode_switches_on_and_holds_still_and_stop_switches_off(case, mode, tmp_path):
    with Bench(case, tmp_path, mode=mode) as bench:
        bench.open(mode)
        steps = bench.emulation.steps + 100
        bench.drive(lambda: bench.emulation.steps > steps)
        np.testing.assert_allclose(bench.truth[0], START, atol=2 * QUANTUM)
        bench.driver.stop()
        bench.off()
        with pytest.raises(RunError, match="are off; enable"):
            bench.write()


@every
@rule(3)
def test_an_unknown_mode_is_refused(bench):
    driver = bench.open()
    with pytest.raises(RunError, match=f"mode 'fast'.*{', '.join(sorted(driver.modes))}"):
        driver.enable("fast")
    bench.off()


@every
@rule(5)
def test_an_effort_arrives_with_sign_ratio_and_size_and_its_motion_is_measured(bench):
    driver = bench.open("effort")
    quantum = np.array([row["resolution"] for row in driver.report()])
    scale = np.array([SCALES[name] for name in JOINTS])
    efforts = np.array([PUSH, -PUSH])
    bench.drive(lambda: abs(bench.out.velocity[0]) > 0.3, effort=efforts)
    asked = np.array(bench.asked) * scale
    np.testing.assert_allclose(asked, efforts, atol=0.51 * quantum.max() + 1e-6)
    before = bench.truth
    bench.write(effort=efforts)
    state, after = bench.fresh(), bench.truth
    assert before[0][0] - QUANTUM <= state.position[0] <= after[0][0] + QUANTUM
    assert before[0][1] + QUANTUM >= state.position[1] >= after[0][1] - QUANTUM
    np.testing.assert_allclose(state.velocity, after[1], rtol=0.3, atol=0.03)
    np.testing.assert_allclose(state.effort, asked, atol=quantum.max() + 1e-4)


@every
@rule(6)
def test_a_position_is_reached(case, tmp_path):
    with Bench(case, tmp_path, mode="position") as bench:
        bench.open("position")
        goal = np.array([0.2, 0.1])
        bench.drive(lambda: np.abs(bench.out.position - goal).max() < 0.02, position=goal)
        np.testing.assert_allclose(bench.truth[0], goal, atol=0.05)


@every
@rule(6)
def test_a_velocity_is_held(case, tmp_path):
    with Bench(case, tmp_path, mode="velocity") as bench:
        bench.open("velocity")
        goal = np.array([0.3, -0.4])
        bench.drive(lambda: np.abs(bench.out.velocity - goal).max() < 0.06, velocity=goal)
        np.testing.assert_allclose(bench.truth[1], goal, atol=0.15)


@every
@rule(4)
def test_stop_from_any_state_twice(case, tmp_path):
    with Bench(case, tmp_path) as bench:
        driver = bench.driver
        for prepare in (lambda: None, driver.open, lambda: driver.enable("effort"), driver.close):
            prepare()
            driver.stop()
            driver.stop()
            bench.off(0.01)
        driver.close()
        driver.open()
        driver.enable("effort")
        driver.close()
        bench.off(0.01)
        bench.open("effort")
        bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


@every
@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
@rule(4)
def test_motors_that_move_go_off_in_time_when_another_thread_stops_them_twice(case, tmp_path, mode):
    with Bench(case, tmp_path, mode=mode) as bench:
        driver = bench.open(mode)
        fields = {mode: {"effort": [PUSH, PUSH], "velocity": [0.3, 0.4], "position": [0.6, 0.3]}[mode]}
        bench.drive(lambda: bench.out.velocity.min() > 0.1, **fields)
        rows, begun = bench.asking(), bench.emulation.steps
        threads = [threading.Thread(target=driver.stop) for _ in range(2)]
        for thread in threads:
            thread.start()
        with pytest.raises(RunError):  # commands do not switch them on again
            for _ in bench.until(lambda: False):
                bench.write(**fields)
        for thread in threads:
            thread.join()
        bench.off()
        assert max((step for step, effort in rows if effort), default=0) <= begun + STOPPING
        assert max(abs(effort) for _, effort in rows) <= 1.01 * LIMIT
        driver.stop()
        bench.off()
        assert not bench.fresh().fault.any()


# --- time ---------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("on", [False, True], ids=["off", "on"])
@rule(8)
def test_read_waits_no_longer_than_its_deadline_and_keeps_the_last_values(bench, on):
    bench.open("effort" if on else "")
    if on:
        bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)
    bench.disturb("drop")
    bench.there(lambda: None)
    bench.read()  # what was under way
    bench.read()
    kept = bench.out.t_ns, bench.out.position.copy(), bench.out.velocity.copy(), bench.out.effort.copy()
    for within in (0.0, 0.005, -1.0):
        if on:
            bench.write()
        begun = now()
        with enforced(7):
            bench.read(within)
            assert now() - begun < 500 * MS
        assert bench.out.t_ns == kept[0]
        for seen, known in zip((bench.out.position, bench.out.velocity, bench.out.effort), kept[1:], strict=True):
            np.testing.assert_array_equal(seen, known)


@every
@rule(7)
def test_read_returns_as_soon_as_all_have_answered(bench):
    bench.open("effort")
    for _ in range(3):
        bench.write()
        begun = now()
        bench.read(10.0)
        assert now() - begun < 5000 * MS
        assert bench.out.t_ns > begun - 1000 * MS


@every
@rule(8)
def test_what_is_measured_has_the_time_at_which_it_came(bench):
    bench.open("effort")
    for _ in range(3):
        begun = now()
        bench.write()
        bench.fresh()
        assert begun < bench.out.t_ns <= now()


@on_frames
@rule(8)
def test_the_time_is_that_of_the_drive_that_was_heard_longest_ago(case, tmp_path):
    """On these lines every frame is of one drive: those of one stay away."""
    (tmp_path / "alone").mkdir()
    with Bench(case, tmp_path / "alone", host=without_b, device=without_b) as alone:
        of_a = {item.id for item in spoken(alone)}
    with Bench(case, tmp_path) as bench:
        assert {item.id for item in spoken(bench)} > of_a
        through = bench.line.faulty_connection.through
        bench.line.faulty_connection.through = lambda items, t_ns, inward: through(
            items if inward else [item for item in items if item.id in of_a], t_ns, inward
        )
        bench.there(lambda: None)
        bench.write()
        bench.read()
        heard, position = bench.out.t_ns, bench.out.position.copy()
        for _ in range(5):
            bench.write(effort=PUSH)
            bench.read(0.02)
        assert bench.out.t_ns == heard
        assert bench.out.position[1] == position[1]
        assert bench.out.position[0] != position[0]


def without_b(rig: dict) -> None:
    del rig["drivers"][0]["joints"]["b"]


def spoken(bench: Bench) -> list[CanFrame]:
    """What the drives say in some cycles."""
    said: list[CanFrame] = []
    send = bench.line.link.send
    bench.line.link.send = lambda item, deadline: (said.append(item), send(item, deadline))
    bench.open("effort")
    begun = bench.emulation.steps
    bench.drive(lambda: bench.emulation.steps > begun + 150, effort=0.5 * PUSH)
    return said


@every
@rule(9)
def test_without_commands_the_drives_stop_by_themselves_however_often_they_are_read(case, tmp_path):
    watchdog = 0.3
    with Bench(case, tmp_path, watchdog=watchdog) as bench:
        bench.open("effort")
        assert bench.driver.watchdog == watchdog
        begun = now()
        bench.drive(lambda: now() - begun > 2 * watchdog * 1e9, effort=[PUSH, -PUSH])
        written = now()
        for _ in bench.until(lambda: bench.out.fault.all()):
            bench.read()
        assert now() - written > 0.5 * watchdog * 1e9
        assert bench.out.fault.all()
        for words in bench.words():
            assert_tells(words)
        bench.off()


@every
@rule(10)
def test_a_command_that_is_no_longer_valid_is_not_sent(bench):
    bench.open("effort")
    bench.drive(lambda: all(bench.asked), effort=PUSH)
    asked = bench.asked
    with pytest.raises(RunError):
        bench.write(effort=-PUSH, valid=-1e-6)
    steps = bench.emulation.steps + 5
    for _ in bench.until(lambda: bench.emulation.steps > steps):
        assert bench.asked == asked


@every
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
@rule(10)
def test_a_command_that_is_not_finite_is_not_sent(case, tmp_path, mode, value):
    with Bench(case, tmp_path, mode=mode) as bench:
        bench.open(mode)
        with pytest.raises(RunError):
            bench.write(**{mode: [0.0, value]})


# --- faults -------------------------------------------------------------------------------------------------


def assert_tells(words: str) -> None:
    """One line that names what is wrong, and the mend."""
    name, _, mend = words.partition("; ")
    assert name and mend and "\n" not in words


@every
@pytest.mark.parametrize("cause", FAULT_CAUSES)
@rule(11)
def test_a_fault_is_reported_and_stays_until_it_is_cleared(bench, cause):
    driver = bench.open("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)
    motor = bench.motors[0]
    motor.fault_cause = cause
    for _ in bench.until(lambda: bench.out.fault[0]):
        bench.write(effort=PUSH)
        bench.read()
    assert bench.out.fault[1] == 0
    words = driver.describe_fault(0, int(bench.out.fault[0]))
    assert bench.out.fault[0] > 0, words
    assert_tells(words)
    for _ in bench.until(lambda: not motor.requested):
        pass
    motor.fault_cause = ""
    steps = bench.emulation.steps + 20
    for _ in bench.until(lambda: bench.emulation.steps > steps):
        bench.write(effort=PUSH)
        assert bench.read().fault[0]
        assert motor.requested == 0.0
    for _ in range(2):
        with pytest.raises(RunError, match=words.partition(" (")[0]):
            driver.enable("effort")
        bench.off()
    cleared(bench)
    driver.enable("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


def cleared(bench: Bench) -> None:
    """By the driver's own procedure if it has one, else by switching the drives off and on."""
    if hasattr(bench.driver, "clear"):
        bench.driver.clear()
        return
    bench.driver.stop()
    bench.driver.close()
    bench.power_cycle()
    bench.driver.open()


@every
@rule(11)
def test_drives_that_are_too_hot_switch_off(bench):
    bench.open("effort")
    bench.motors[1].temperature = bench.motors[1].max_temperature + 5.0
    for _ in bench.until(lambda: bench.out.fault[1]):
        bench.write(effort=PUSH)
        bench.read()
    assert bench.out.fault[0] == 0
    assert_tells(bench.words()[0])


@every
@rule(11)
def test_a_loss_of_power_is_reported(bench):
    bench.open("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)
    bench.power_cycle()
    for _ in bench.until(lambda: bench.out.fault.any()):
        bench.write(effort=PUSH)
        bench.read()
    assert_tells(bench.words()[0])
    bench.driver.stop()
    bench.off()


@every
@rule(11)
def test_any_fault_code_has_a_description(bench):
    for code in (1, -1, 99, -99, 123456, 0x7FFFFFFF, -(2**31), 2**40):
        assert_tells(bench.driver.describe_fault(0, code))


# --- drives that are not what the rig says ---------------------------------------------------------------------


def refused(bench: Bench, joint: str) -> str:
    """What is said when the driver is opened in vain."""
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    place = str(caught.value.place)
    assert place.startswith("rig.yaml") or "rig.yaml" in place
    assert f".joints.{joint}" in place, place
    assert "\n" not in caught.value.what and "; " in caught.value.what
    bench.off(0.01)
    with pytest.raises(RunError):
        bench.driver.link.receive(0)
    return caught.value.what


@every
@rule(12)
def test_silence_is_refused_with_what_to_check(bench):
    bench.disturb("drop")
    assert refused(bench, "a").startswith("no answer from ")
    bench.disturb()
    bench.open("effort")  # nothing of the first try is left


@every
@rule(12)
def test_a_drive_with_another_address_is_refused(case, tmp_path):
    with Bench(case, tmp_path, device=without_b) as bench:
        refused(bench, "b")


@every
@rule(12)
def test_a_drive_of_another_kind_is_refused(case, tmp_path, monkeypatch):
    if case.family not in STRANGERS:
        pytest.skip(f"STRANGERS does not say how a drive of {case.family} may be another")
    keys, change, words = STRANGERS[case.family]

    def other(rig):
        rig["drivers"][0]["joints"]["b"].update(keys)

    def expected(rig):
        rig["drivers"][0]["joints"]["b"].update({"vendor": 78} if "vendor" in keys else {})

    with Bench(case, tmp_path, device=other, host=expected) as bench:
        bench.there(lambda: change(bench.line.drives, monkeypatch))
        assert words in refused(bench, "b" if keys else "a")


def _of_another_map(patch: Any) -> None:
    from cosim.drivers.moteus.device import bank
    from cosim.drivers.moteus.registers import MAP_VERSION

    patch.setitem(bank._WHOLE, MAP_VERSION, lambda servo: 3)


def _of_another_firmware(emulator: Any) -> None:
    emulator.firmware = (0, 5, 6)
    for node in getattr(emulator, "nodes", ()):
        node.firmware = (0, 5, 6)


@every
@pytest.mark.parametrize("limit", ["effort", "velocity"])
@rule(13)
def test_a_limit_beyond_the_drives_own_is_refused(case, tmp_path, limit):
    def wide(rig):
        rig["joints"]["b"]["limits"][limit] = 1000.0

    with Bench(case, tmp_path, host=wide) as bench:
        what = refused(bench, "b")
        assert limit in what and "limit" in what


@every
def test_two_joints_at_one_node_are_a_mistake(case, tmp_path):
    first, _ = addresses(case)
    path = write_rig(tmp_path / "rig.yaml", rig(section(case, tmp_path), (first, dict(first))))
    with pytest.raises(InputErrors, match="is that of joint 'a' already; give each drive its own"):
        read_rig(path)


# --- efforts ---------------------------------------------------------------------------------------------------


@every
@rule(13)
def test_efforts_beyond_the_field_are_clipped_and_counted(bench):
    driver = bench.open("effort")
    rows = driver.report()
    assert [row["joint"] for row in rows] == list(JOINTS)
    bench.write(effort=[1e6, -1e6])
    for _ in bench.until(lambda: all(bench.asked)):
        pass
    for motor in bench.motors:
        assert abs(motor.requested) <= motor.max_effort
    assert bench.asked[0] < 0 and bench.asked[1] < 0  # the first is turned round
    driver.stop()
    for row in driver.report():
        assert row["resolution"] >= 0.0 and row["limit"] > 0.0
        assert row["saturated"] == (1 if row["limit"] < 1e6 else 0)


# --- lines -----------------------------------------------------------------------------------------------------


@every
@rule(14)
def test_spoiled_data_are_counted_and_change_nothing(bench):
    """Answers that are cut off on lines of frames, answers and noise that are spoiled on lines of bytes."""
    bench.open("effort")
    said, send, dice = [], bench.line.link.send, random.Random(5)
    bench.line.link.send = lambda item, deadline: (said.append(item), send(item, deadline))
    for _ in bench.until(lambda: len(said) > 20):
        bench.write()
        bench.read()
    del bench.line.link.send
    counted = bench.driver.lost + bench.driver.link.meter.errors
    serial = getattr(bench.line.link, "serial", None)  # of an adapter for frames
    disturbed, through = bench.line.faulty_connection, bench.line.faulty_connection.through
    for k, item in enumerate(said[:20]):
        if isinstance(item, bytes) and k == 3:
            break
        if isinstance(item, bytes):
            disturbed.through = lambda items, t_ns, inward: through(
                items if inward else map(spoiled, items), t_ns, inward
            )
        elif serial is not None:
            bench.there(lambda: serial.send(dice.randbytes(20) + b"\r\n", now() + 100 * MS))
        else:
            short = item._replace(data=item.data[: dice.randrange(1, 4)])
            bench.there(lambda short=short: bench.line.link.send(short, now() + 100 * MS))
        bench.write()
        bench.read()
        assert not bench.out.fault.any()
    disturbed.through = through
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)
    assert bench.driver.lost + bench.driver.link.meter.errors > counted


def spoiled(item: bytes) -> bytes:
    """With one bit turned over in the middle."""
    half = len(item) // 2
    return b"%b%c%b" % (item[:half], item[half] ^ 4, item[half + 1 :])


@every
@rule(15)
def test_a_lost_connection_can_be_opened_again(bench):
    driver = bench.open("effort")
    bench.drive(lambda: all(bench.asked), effort=PUSH)
    if bench.case.line == "pty":
        bench.there(bench.line.link.close)
    else:
        driver.link._bus.shutdown()
    with pytest.raises(ConnectionLost):
        for _ in bench.until(lambda: False):
            bench.write()
            bench.read()
    with pytest.raises(ConnectionLost):
        bench.write()
    begun = now()
    driver.stop()
    driver.close()
    assert now() - begun < 2000 * MS
    if bench.case.line == "pty":
        bench.there(bench.line.link.open)
    for _ in bench.until(lambda: not any(bench.asked)):  # the watchdog
        pass
    driver.open()
    try:
        driver.enable("effort")
    except RunError as error:  # for some the watchdog is a fault
        assert "watchdog" in str(error) or "heartbeat" in str(error)
        cleared(bench)
        driver.enable("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


@every
@rule(15)
def test_drives_that_a_program_left_on_are_taken_over(bench):
    driver = bench.open("effort")
    bench.drive(lambda: all(bench.asked), effort=PUSH)
    driver.link.close()  # as if the program was killed
    driver.open()
    bench.off()
    driver.enable("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)
