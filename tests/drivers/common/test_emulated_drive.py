"""An emulated drive without protocol: whatever it is commanded, its motor gets no more than both limits allow."""

import math

from hypothesis import example, given
from hypothesis import strategies as st

from cosim.drivers.common.driver import MODES
from cosim.drivers.common.emulated_drive import WATCHDOG_NS, EmulatedDrive
from cosim.drivers.common.motor import Rotor

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
