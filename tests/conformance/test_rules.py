"""Drivers that break the contract are caught by the conformance tests, which name the rule within 5 s."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cosim.drivers import template
from cosim.drivers.template.driver import TemplateDriver

from . import test_life_cycle, test_reports, test_time
from .families import Bench, Case
from .rules import RULES, RuleBroken

CASE = Case("template", "virtual", stepped=True)
SUITE: dict[str, Any] = vars(test_life_cycle) | vars(test_time) | vars(test_reports)


class BlocksInRead(TemplateDriver):
    def read(self, out, deadline_ns):
        super().read(out, deadline_ns)
        if not self._commanded and not any(self._drive_mode):
            time.sleep(60.0)


class ReadsPastItsDeadline(TemplateDriver):
    def read(self, out, deadline_ns):
        super().read(out, deadline_ns + 2_000_000_000)


class RaisesInStop(TemplateDriver):
    def stop(self):
        super().stop()
        if not self.link.lost and self._state.name == "CLOSED":
            raise OSError("not connected")


class KeepsRunningAfterStop(TemplateDriver):
    def _stop_items(self):
        return iter(())


class MovesBeforeEnable(TemplateDriver):
    def write(self, cmd, deadline_ns):
        if self._state.name == "OFF":
            self._state, self._stopped = type(self._state).ON, False
            for k in range(len(self.joints)):
                self._send(k, "enable")
        super().write(cmd, deadline_ns)


class WritesAfterStop(TemplateDriver):
    def stop(self):
        state = self._state
        super().stop()
        if state.name == "ON":
            self._state, self._stopped = state, False


class IgnoresLimits(TemplateDriver):
    def _check_limits(self, k, own, tolerance=0.0):
        return None


class KeepsTimeFreshWhenLate(TemplateDriver):
    def read(self, out, deadline_ns):
        super().read(out, deadline_ns)
        out.t_ns = self._now()


class SendsExpiredCommands(TemplateDriver):
    def write(self, cmd, deadline_ns):
        cmd.valid_until_ns = deadline_ns + 1_000_000_000
        super().write(cmd, deadline_ns)


class IgnoresSigns(TemplateDriver):
    def __init__(self, *args):
        super().__init__(*args)
        self.units.scale = [abs(scale) for scale in self.units.scale]


class FeedsWatchdogsByReading(TemplateDriver):
    def _poll(self, deadline_ns):
        super()._poll(deadline_ns)
        if self._is_on:
            self._send_commands(self._feedback.position, *2 * [[0.0] * len(self.joints)], deadline_ns)


class ClearsFaultsByEnable(TemplateDriver):
    def _fault_before_enable(self, k):
        self._clear_faults()
        return 0


class NamesNoJoint(TemplateDriver):
    def _no_answer(self, k):
        return RuntimeError("silence")


class DropsSpoiledFramesSilently(TemplateDriver):
    lost = 0  # type: ignore[assignment]


BLOCKING = 7, "test_read_waits_no_longer_than_its_deadline_and_keeps_the_last_values"
BROKEN: list[tuple[type, int, str]] = [
    (ReadsPastItsDeadline, *BLOCKING),
    (RaisesInStop, 4, "test_stop_from_any_state_twice"),
    (KeepsRunningAfterStop, 4, "test_moving_motors_switch_off_in_time_when_another_thread_stops_them_twice"),
    (MovesBeforeEnable, 2, "test_nothing_is_written_before_the_motors_are_on"),
    (WritesAfterStop, 3, "test_a_mode_switches_on_and_holds_still_and_stop_switches_off"),
    (IgnoresLimits, 13, "test_a_limit_beyond_the_drives_own_is_refused"),
    (KeepsTimeFreshWhenLate, 8, "test_read_waits_no_longer_than_its_deadline_and_keeps_the_last_values"),
    (SendsExpiredCommands, 10, "test_a_command_that_is_no_longer_valid_is_not_sent"),
    (IgnoresSigns, 5, "test_an_effort_arrives_with_sign_ratio_and_size_and_its_motion_is_measured"),
    (FeedsWatchdogsByReading, 9, "test_without_commands_the_drives_stop_by_themselves_however_often_they_are_read"),
    (ClearsFaultsByEnable, 11, "test_a_fault_is_reported_and_stays_until_it_is_cleared"),
    (NamesNoJoint, 12, "test_silence_is_refused_with_what_to_check"),
    (DropsSpoiledFramesSilently, 14, "test_damaged_data_are_counted_and_change_nothing"),
]
FURTHER: dict[str, dict[str, Any]] = {  # parameters of tests that have some
    "test_read_waits_no_longer_than_its_deadline_and_keeps_the_last_values": {"on": False},
    "test_a_limit_beyond_the_drives_own_is_refused": {"limit": "velocity"},
    "test_moving_motors_switch_off_in_time_when_another_thread_stops_them_twice": {"mode": "effort"},
    "test_a_mode_switches_on_and_holds_still_and_stop_switches_off": {"mode": "effort"},
    "test_a_fault_is_reported_and_stays_until_it_is_cleared": {"cause": "overcurrent"},
}


def run(name: str, folder: Any, case: Case) -> None:
    """The conformance test of this name."""
    test: Callable[..., Any] = SUITE[name]
    keys = FURTHER.get(name, {})
    if "bench" in test.__code__.co_varnames or "bench" in test.__wrapped__.__code__.co_varnames[:1]:
        with Bench(case, folder) as bench:
            test(bench=bench, **keys)
    else:
        test(case=case, tmp_path=folder, **keys)


def reported(driver: type, number: int, name: str, folder: Path, patch: pytest.MonkeyPatch, case: Case) -> None:
    """It breaks this rule in the test of this name."""
    patch.setattr(template, "TemplateDriver", driver)
    with pytest.raises(RuleBroken, match=f"^{re.escape(f'rule {number}: {RULES[number]}')}"):
        run(name, folder, case)


@pytest.mark.parametrize(("driver", "number", "name"), BROKEN, ids=[row[0].__name__ for row in BROKEN])
def test_a_broken_driver_is_reported_by_its_rule_within_5_s(driver, number, name, tmp_path, monkeypatch):
    begun = time.process_time()
    reported(driver, number, name, tmp_path, monkeypatch, CASE)
    assert time.process_time() - begun < 5.0


@pytest.mark.real_time
def test_a_driver_that_blocks_in_read_is_reported_by_its_rule_within_5_s(tmp_path, monkeypatch):
    begun = time.monotonic()
    reported(BlocksInRead, *BLOCKING, tmp_path, monkeypatch, CASE._replace(stepped=False))
    assert time.monotonic() - begun < 5.0


def test_every_rule_has_a_test():
    checked = {test.rule for test in SUITE.values() if hasattr(test, "rule")}
    assert checked | {7} == set(RULES)


def test_the_rules_are_documented():
    page = Path(__file__).parents[2] / "docs" / "howto" / "add-a-motor-family.md"
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page.read_text(), re.M)
    assert {int(number): sentence for number, sentence in rows} == RULES
