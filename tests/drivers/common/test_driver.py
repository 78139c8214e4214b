"""What every driver refuses, and what a stop at any moment does: the base of all families, over each of them."""

import math
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cosim.core.errors import RunError
from cosim.plugins.drivers.common.driver import MODES
from cosim.plugins.drivers.common.emulated_drive import WATCHDOG_NS, EmulatedDrive
from cosim.plugins.drivers.common.fault_texts import UNKNOWN, check_fault_texts, code_of, fault_table
from cosim.plugins.drivers.common.motor import Rotor
from tests.conformance.families import stepped_cases
from tests.conformance.marks import drivers
from tests.conformance.wires import Desk
from tests.drivers.bench import refused
from tests.kit.clock import MS


@pytest.fixture
def desk(case, tmp_path, monkeypatch) -> Desk:
    return Desk(case, tmp_path, monkeypatch)


def calls_in_a_wrong_order(desk: Desk) -> list[str]:
    driver, wire = desk.driver, desk.wire

    def write(validity: int = MS, **fields) -> None:
        command = desk.command(**fields)
        command.valid_until_ns = wire.t_ns + validity
        driver.write(command, wire.t_ns + MS)

    said = [refused(driver.enable, "effort"), refused(driver.clear)]
    driver.stop()
    driver.open()
    said += [refused(driver.enable, "dance"), refused(write)]
    driver.enable("effort")
    sent = len(wire.sent)
    said += [refused(lambda: write(-MS))]
    said += [refused(lambda value=value: write(effort=[0.0, value])) for value in (math.nan, math.inf, 1e39)]
    assert len(wire.sent) == sent
    driver.stop()
    driver.close()
    driver.close()
    return [*said, refused(driver.enable, "effort")]


def test_calls_in_a_wrong_order_are_refused_alike(tmp_path, monkeypatch, said):
    """In the same words by every family."""
    found = set()
    for case in stepped_cases():
        with monkeypatch.context() as patch:
            found.add(tuple(calls_in_a_wrong_order(Desk(case, tmp_path, patch))))
    (words,) = found
    said(words)


def stopped_after(desk: Desk, number: int) -> None:
    """A signal or another thread stops the driver when it has sent so many more items."""
    send, numbers = desk.wire.send, count(1)

    def stopping(item, deadline_ns):
        send(item, deadline_ns)
        if next(numbers) == number:
            desk.wire.send = send
            desk.driver.stop()

    desk.wire.send = stopping


def every_stop_wins(desk: Desk, action: Callable[[], object], before: Callable[[], object]) -> None:
    """Wherever it comes: the action is refused, and no motor is on."""
    number = 1
    while True:
        before()
        stopped_after(desk, number)
        try:
            action()
        except RunError as error:
            assert str(error) == "the motors of a, b were stopped; enable the driver first"
        else:
            if vars(desk.wire).pop("send", None) is not None and desk.driver._is_on:
                break  # it was not stopped: there were fewer items
        for _ in range(30):
            desk.wire.step()
            assert not any(motor.requested for motor in desk.motors), number
        number += 1
    assert number > 1


@drivers
def test_a_stop_while_drives_are_switched_on_wins(desk):
    desk.driver.open()
    every_stop_wins(desk, lambda: desk.driver.enable("effort"), desk.driver.stop)


@drivers
def test_no_command_follows_a_stop(desk):
    desk.driver.open()

    def on() -> None:
        desk.driver.stop()
        desk.driver.enable("effort")
        desk.cycle(2, effort=0.05)

    every_stop_wins(desk, lambda: desk.cycle(1, effort=0.05), on)


# --- fault codes whose texts are in the rig ---

TEXTS = {"3": "Overcurrent; check the phases for a short", 7: "encoder"}


def test_the_text_of_a_fault_is_a_name_and_a_fix():
    check_fault_texts(TEXTS)
    assert fault_table(TEXTS, "its manual") == {
        3: ("Overcurrent", "check the phases for a short"),
        7: ("encoder", "see its manual"),
    }
    # an emulated drive reports the code whose name has its fault
    table = fault_table({**TEXTS, 5: "brake; check the encoder's cable"}, "")
    assert [code_of(fault, table) for fault in ("overcurrent", "encoder", "undervoltage", "")] == [3, 7, UNKNOWN, 0]


@pytest.mark.parametrize("texts", [{"high": "overcurrent"}, {-1: "overcurrent"}, {"7": 7}])
def test_a_code_without_a_text_is_a_mistake(texts):
    (code,) = texts
    with pytest.raises(ValueError, match=f"^'faults' has a text for each fault code; '{code}' has none$"):
        check_fault_texts(texts)


# --- an emulated drive without protocol: its motor gets no more than both limits allow ---

numbers = st.floats(allow_nan=True, allow_infinity=True)


def drive_at(mode: str, target: float, limit: float) -> EmulatedDrive:
    drive = EmulatedDrive(Rotor(max_effort=2.0))
    drive.enable(0)
    drive.command(mode, target, limit, WATCHDOG_NS, 0)
    drive.process(0)
    return drive


@given(st.sampled_from(sorted(MODES)), numbers, numbers)
@example("position", 1e307, 1.0)
@example("position", math.inf, 1.0)
@example("velocity", -1e308, 1.0)
def test_effort_is_finite_and_within_both_limits(mode: str, target: float, limit: float) -> None:
    effort = drive_at(mode, target, limit).motor.effort
    assert math.isfinite(effort) and abs(effort) <= 2.0
    assert math.isnan(limit) or abs(effort) <= max(limit, 0.0)


def test_a_drive_that_is_off_ignores_commands() -> None:
    drive = EmulatedDrive(Rotor())
    drive.command("effort", 1.0, 2.0, WATCHDOG_NS, 0)
    drive.process(0)
    assert drive.mode == "" and drive.motor.effort == 0.0


def test_the_watchdog_latches_a_fault_that_clear_clears() -> None:
    drive = drive_at("effort", 1.0, 2.0)
    drive.process(WATCHDOG_NS)
    assert drive.motor.effort == 1.0
    drive.process(WATCHDOG_NS + 1)
    assert (drive.fault, drive.mode, drive.motor.effort) == ("watchdog", "", 0.0)
    drive.enable(WATCHDOG_NS + 2)
    assert drive.mode == ""
    drive.clear()
    drive.enable(WATCHDOG_NS + 2)
    assert (drive.fault, drive.mode) == ("", "effort")


def test_a_fault_persists_while_its_cause_does() -> None:
    drive = drive_at("effort", 1.0, 2.0)
    drive.motor.temperature = drive.motor.max_temperature + 1.0
    drive.process(1)
    drive.clear()
    assert drive.fault == "overtemperature"
    drive.motor.temperature = 20.0
    drive.clear()
    assert drive.fault == ""
