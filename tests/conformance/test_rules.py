"""Drivers that break the contract are caught by the conformance tests, which name the rule within 5 s."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cosim.plugins.drivers import template
from cosim.plugins.drivers.template.driver import TemplateDriver

from . import rules, test_life_cycle, test_reports, test_time
from .families import Bench, Case
from .rules import RULES, RuleBroken

CASE = Case("template", "virtual", stepped=True)
EFFORT = {"mode": "effort"}
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


READS = "read_waits_no_longer_than_its_deadline_and_keeps_the_last_values"
BROKEN: list[tuple[type, int, str, dict[str, Any]]] = [
    (ReadsPastItsDeadline, 7, READS, {"on": False}),
    (RaisesInStop, 4, "stop_from_any_state_twice", {}),
    (KeepsRunningAfterStop, 4, "moving_motors_switch_off_in_time_when_another_thread_stops_them_twice", EFFORT),
    (MovesBeforeEnable, 2, "nothing_is_written_before_the_motors_are_on", {}),
    (WritesAfterStop, 3, "a_mode_switches_on_and_holds_still_and_stop_switches_off", EFFORT),
    (IgnoresLimits, 13, "a_limit_beyond_the_drives_own_is_refused", {"limit": "velocity"}),
    (KeepsTimeFreshWhenLate, 8, READS, {"on": False}),
    (SendsExpiredCommands, 10, "a_command_that_is_no_longer_valid_is_not_sent", {}),
    (IgnoresSigns, 5, "an_effort_arrives_with_sign_ratio_and_size_and_its_motion_is_measured", {}),
    (FeedsWatchdogsByReading, 9, "without_commands_the_drives_stop_by_themselves_however_often_they_are_read", {}),
    (ClearsFaultsByEnable, 11, "a_fault_is_reported_and_stays_until_it_is_cleared", {"cause": "overcurrent"}),
    (NamesNoJoint, 12, "silence_is_refused_with_what_to_check", {}),
    (DropsSpoiledFramesSilently, 14, "damaged_data_are_counted_and_change_nothing", {}),
]


def reported(
    driver: type, number: int, name: str, keys: dict[str, Any], folder: Path, patch: pytest.MonkeyPatch, case: Case
) -> None:
    """It breaks this rule in the conformance test of this name."""
    patch.setattr(template, "TemplateDriver", driver)
    test: Callable[..., Any] = SUITE[f"test_{name}"]
    with pytest.raises(RuleBroken, match=f"^{re.escape(f'rule {number}: {RULES[number]}')}"):
        if "bench" in test.__wrapped__.__code__.co_varnames[:1]:
            with Bench(case, folder) as bench:
                test(bench=bench, **keys)
        else:
            test(case=case, tmp_path=folder, **keys)


@pytest.mark.parametrize(("driver", "number", "name", "keys"), BROKEN, ids=[row[0].__name__ for row in BROKEN])
def test_a_broken_driver_is_reported_by_its_rule_within_5_s(driver, number, name, keys, tmp_path, monkeypatch):
    begun = time.process_time()
    reported(driver, number, name, keys, tmp_path, monkeypatch, CASE)
    assert time.process_time() - begun < 5.0


@pytest.mark.real_time
def test_a_driver_that_blocks_in_read_is_reported_by_its_rule(tmp_path, monkeypatch):
    monkeypatch.setattr(rules, "LIMIT", 1.2)
    reported(BlocksInRead, 7, READS, {"on": False}, tmp_path, monkeypatch, CASE._replace(stepped=False))


def test_every_rule_has_a_test():
    checked = {test.rule for test in SUITE.values() if hasattr(test, "rule")}
    assert checked | {7} == set(RULES)
