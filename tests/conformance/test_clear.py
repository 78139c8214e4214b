"""Faults that a killed run left in drives prevent the next one until they are cleared deliberately."""

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.plugins.drivers.common.motor import FAULT_CAUSES
from cosim.plugins.drivers.dynamixel import codec
from cosim.rig.rig import load_rig

from .families import PATIENCE, START, Bench, Case, stepped_cases
from .marks import IN_PYTHON, PUSH, assert_has_fix, drivers, engines, in_turn, over
from .wires import Desk

WATCHDOG = 0.3  # s
HOT = 30.0  # K above the drive's limit
QUANTUM = 2e-3  # rad, the coarsest resolution of an encoder
# for these a tripped watchdog only means that commands were missing: switching on clears it
FORGIVING = {"cia402", "dynamixel", "vesc"}
# check for faults of a motor only while it is on
BLIND = {"moteus"}
FIX = "; fix the cause, then run with --clear-faults"


@pytest.fixture
def bench(case, tmp_path):
    with Bench(case, tmp_path, watchdog=WATCHDOG) as made:
        yield made


def moving(bench: Bench) -> None:
    """Enable the driver and move the motors."""
    bench.open("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


def works(bench: Bench) -> None:
    """Switched on after a fault, drives follow their commands."""
    bench.driver.enable("effort")
    assert not bench.driver.latched
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


def troubled(bench: Bench, **what: str | float) -> str:
    """The fault of joint b's drive for a cause, or a temperature, that occurs while it is on."""
    moving(bench)
    for name, value in what.items():
        setattr(bench.motors[1], name, value)
    for _ in bench.until(lambda: bench.out.fault[1]):
        bench.write(effort=PUSH)
        bench.read()
    return bench.driver.describe_fault(1, int(bench.out.fault[1]))


def stands(bench: Bench, words: str) -> None:
    """Enabling is refused repeatedly, and no motor moves."""
    for _ in range(2):
        with pytest.raises(RunError) as caught:
            bench.driver.clear()
        assert str(caught.value) == f"joint 'b': the fault persists: {words}"
        bench.off(0.02)


# --- causes that are gone -----------------------------------------------------------------------------------------


def cleared(bench: Bench) -> None:
    """What was latched is gone, the motors are off, and they can be switched on."""
    bench.driver.clear()
    assert not bench.driver.latched and not bench.fresh().fault.any()
    bench.off(0.02)
    works(bench)


@engines
def test_a_watchdog_that_tripped_is_cleared(bench):
    moving(bench)
    for _ in bench.until(lambda: bench.out.fault.all()):
        bench.read()
    words = bench.words()
    if bench.case.family not in FORGIVING:
        with pytest.raises(RunError) as caught:
            bench.driver.enable("effort")
        assert any(each in str(caught.value) for each in words) and bench.driver.latched
        bench.off(0.01)
    cleared(bench)


@engines
@pytest.mark.parametrize("cause", ["", "overcurrent"])
def test_what_a_killed_program_left_is_cleared_by_the_next(bench, cause):
    """Motors that are on, or a fault whose cause is gone."""
    if cause:
        words = troubled(bench, fault_cause=cause)
    else:
        moving(bench)
    bench.driver.link.close()
    for _ in bench.until(lambda: cause or not any(bench.asked)):  # some damp their motors for a while
        pass
    bench.motors[1].fault_cause = ""
    bench.driver.open()
    if cause:
        with pytest.raises(RunError) as caught:
            bench.driver.enable("effort")
        assert words in str(caught.value) and bench.driver.latched
    cleared(bench)


# --- causes that persist --------------------------------------------------------------------------------------------


@in_turn("cause", FAULT_CAUSES, stepped_cases())
def test_a_persistent_fault_is_reported_with_its_joint(bench, cause):
    words = troubled(bench, fault_cause=cause)
    if bench.case.family in BLIND:
        bench.driver.clear()
        with pytest.raises(RunError) as caught:
            bench.driver.enable("effort")
        assert words in str(caught.value)
        bench.off(0.02)
    else:
        stands(bench, words)
    bench.motors[1].fault_cause = ""
    bench.driver.clear()
    works(bench)


@drivers
def test_a_drive_that_is_still_too_hot_is_reported(bench):
    motor = bench.motors[1]
    words = troubled(bench, temperature=motor.max_temperature + HOT)
    assert bench.out.fault[0] == 0
    assert_has_fix(words)
    stands(bench, words)
    motor.temperature = motor.max_temperature - HOT
    bench.driver.clear()
    works(bench)


@drivers
def test_silence_is_not_taken_for_a_fault_that_went_away(bench):
    bench.open()
    bench.disturb("drop")
    bench.there(lambda: None)
    with pytest.raises(RunError, match="answer"):
        bench.driver.clear()
    bench.disturb()
    bench.driver.clear()
    bench.fresh()
    for _ in bench.until(lambda: not bench.out.fault.any()):  # some report by themselves after power-on
        bench.read()
    works(bench)


# --- nothing to clear ------------------------------------------------------------------------


@drivers
def test_a_sound_drive_stays_as_it_is_and_motors_that_are_on_are_off_afterwards(bench):
    with pytest.raises(RunError, match=r"are not open; open (the driver|them) first$"):
        bench.driver.clear()
    bench.open()
    for _ in range(2):
        bench.driver.clear()
        assert not bench.fresh().fault.any()
        np.testing.assert_allclose(bench.out.position, START, atol=QUANTUM)
        bench.off(0.02)
    np.testing.assert_allclose(bench.truth[0], START, atol=1e-9)
    works(bench)
    bench.driver.clear()
    with pytest.raises(RunError, match="off"):
        bench.write(effort=PUSH)
    bench.off()
    works(bench)
    bench.driver.close()
    with pytest.raises(RunError, match=r"are not open; open (the driver|them) first$"):
        bench.driver.clear()


# --- reboots ------------------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path, monkeypatch):
    made = Desk(Case("dynamixel", "pty"), tmp_path, monkeypatch)
    made.driver.open()
    return made


def test_only_drives_with_an_error_are_rebooted(desk):
    def rebooted() -> list[int]:
        desk.driver.clear()
        return [item[4] for item in desk.wire.sent if item[7] == codec.REBOOT]

    assert rebooted() == []
    desk.motors[1].fault_cause = "overcurrent"
    desk.wire.step()
    desk.motors[1].fault_cause = ""
    assert rebooted() == [2]
    desk.cycle(3)
    assert desk.out.t_ns and not desk.out.fault.any()
    assert rebooted() == [2]


def test_a_drive_that_does_not_restart_is_reported_after_a_second(desk):
    node = desk.emulator.nodes[1]
    desk.motors[1].fault_cause = "overcurrent"
    desk.wire.step()
    reboot, node._instructions[codec.REBOOT] = node._instructions[codec.REBOOT], lambda params: gone(params)

    def gone(params):
        node.answers = lambda instruction: False
        return reboot(params)

    begun = desk.wire.t_ns
    with pytest.raises(RunError) as caught:
        desk.driver.clear()
    assert str(caught.value) == "joint 'b': drive 2 did not answer within 1 s after its reboot; check its supply"
    assert 1e9 < desk.wire.t_ns - begun < 2e9
    assert not any(motor.requested for motor in desk.motors)


# --- whole runs ---------------------------------------------------------------------------------------------


def patient(rig: dict) -> None:
    """On a machine that stalls."""
    rig |= {"guard": {"stale": 1.0, "watchdog": PATIENCE}, "schedule": {"step": 0.1, "realtime": {"warm_up": 60}}}


@over(IN_PYTHON[0])
def test_a_run_is_refused_with_the_fix_and_starts_with_clear_faults(case, tmp_path):
    with Bench(case, tmp_path, host=patient) as bench:
        words = troubled(bench, fault_cause="overcurrent")
        bench.motors[0].fault_cause = "overcurrent"  # on a busy machine its watchdog would trip before the run begins
        bench.off()
        bench.driver.link.close()
        for motor in bench.motors:
            motor.fault_cause = ""
        with pytest.raises(RunError) as caught:
            load_rig(tmp_path / "rig.yaml").run(0.5)
        message = str(caught.value)
        assert words in message and message.endswith(FIX) and "\n" not in message
        bench.off(0.02)
        run = load_rig(tmp_path / "rig.yaml").run(0.5, clear_faults=True)
        assert run.fault == "" and len(run.t) == 6
        bench.off(0.02)


@over(*{case.line: case for case in stepped_cases()}.values())
def test_a_run_that_cannot_clear_ends_before_anything_is_armed(case, tmp_path, monkeypatch):
    with Bench(case, tmp_path, host=patient) as bench:
        words = troubled(bench, temperature=bench.motors[1].max_temperature + HOT)
        bench.driver.link.close()
        bench.lend(monkeypatch)
        with pytest.raises(RunError) as caught:
            load_rig(tmp_path / "rig.yaml").run(0.5, clear_faults=True)
        assert str(caught.value) == f"{tmp_path / 'rig.yaml'}: joint 'b': the fault persists: {words}"
        bench.off(0.02)
