"""A rig that is run from the page: started, tuned, paused, stepped, stopped, killed."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.kit.browser import OpenedPage

SLOW = ("--frame-rate", "2")  # drawn without a GPU


def started(dash, rig: Path) -> OpenedPage:
    page = dash(str(rig), *SLOW)
    page.wait_for_status("Ready to start")
    page.press("Start")
    page.wait_for_status("Running")
    page.tab.wait_for_selector(".uplot")
    return page


def peak_of_error(page: OpenedPage, after: float) -> float:
    """The largest error in the chart of the page after a time; 0 until there is a second of it."""
    t, error = (np.array(column, dtype=float) for column in page.chart("hinge tracking error")[:2])
    late = t > after
    return float(np.abs(error[late]).max()) if late.any() and t[-1] > after + 1.0 else 0.0


def now(page: OpenedPage) -> float:
    return page.chart("hinge tracking error")[0][-1]


def test_a_moved_gain_changes_the_error_in_the_chart_and_undo_brings_it_back(dash, swing: Path) -> None:
    page = started(dash, swing)
    page.wait_until(lambda: now(page) > 2.5)
    before = peak_of_error(page, 1.0)
    slider = page.tab.get_by_role("slider").first
    until_listed(page, lambda: slider.press("End"), "hold.kp = 1000 (was 50), set by 'dashboard'")  # 20 times as much
    at = now(page)
    page.wait_until(lambda: peak_of_error(page, at + 0.5) > 0.0)
    assert 0.0 < peak_of_error(page, at + 0.5) < 0.2 * before
    until_listed(page, lambda: page.press("undo"), "hold.kp = 50 (was 1000)")
    at = now(page)
    page.wait_until(lambda: peak_of_error(page, at + 0.5) > 0.7 * before)
    assert page.external == []


def events(page: OpenedPage) -> str:
    page.open("Events")
    return page.text()


def until_listed(page: OpenedPage, act: Callable[[], object], event: str) -> None:
    """Act on a gain until the run has it: what is chosen while the run does not answer for a moment, as on a busy
    machine, goes to the next run alone, and the slider returns to what the run has."""

    def listed() -> bool:
        page.open("Gains")
        act()
        page.open("Events")
        for _ in range(20):
            if event in page.text():
                return True
            page.tab.wait_for_timeout(250)
        return False

    page.wait_until(listed)


def test_a_typed_gain_is_saved_as_an_overlay_that_a_run_takes(dash, swing: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = started(dash, swing)
    until_listed(page, lambda: page.set_number("N·m/rad", 1234.5), "hold.kp = 1234.5 (was 50)")
    page.open("Gains")
    page.press("save as overlay")
    page.wait_for_text(f"wrote {tmp_path / 'swing_gains.yaml'}")
    assert (tmp_path / "swing_gains.yaml").read_text().splitlines()[1:] == ["controllers.hold.kp: [1234.5]"]
    from cosim import load_rig
    from cosim.rig.reading.yaml_source import read_overlay

    assert load_rig(swing, read_overlay(tmp_path / "swing_gains.yaml")).parameters["hold.kp"] == [1234.5]


def test_a_number_beyond_its_bounds_is_refused_and_the_page_goes_on(dash, swing: Path) -> None:
    page = started(dash, swing)
    page.set_number("N·m/rad", -5.0)
    page.wait_for_text("hold.kp: must be at least 0 N*m/rad, is -5 N*m/rad")
    page.set_number("N·m/rad", 60.0)
    page.wait_until(lambda: "hold.kp = 60 (was 50)" in events(page))


def test_a_pause_holds_the_time_and_steps_move_it(dash, swing: Path) -> None:
    page = started(dash, swing)
    page.press("Pause")
    page.wait_for_status("Paused")
    page.tab.wait_for_timeout(500)
    before = page.detail()
    page.tab.wait_for_timeout(1000)
    assert page.detail() == before
    t = float(re.search(r"t = ([\d.]+) s", before)[1])  # type: ignore[index]
    page.set_number("ticks per step", 40)
    page.tab.wait_for_timeout(300)
    page.press("Step")
    page.wait_for_text(f"t = {t + 0.04:.3f} s")
    page.press("Resume")
    page.wait_for_status("Running")
    page.open("Events")
    page.set_number("marker", "look here")
    page.press("Add the marker")
    page.wait_for_text("marker by 'dashboard': look here")


def test_an_emergency_stop_needs_no_control_and_the_run_starts_again(dash, swing: Path) -> None:
    page = started(dash, swing)
    page.press("Release control")
    page.wait_for_text("Watching only: nobody has control.")
    page.press("EMERGENCY STOP")
    page.wait_for_status("Failed")
    assert "emergency stop by 'dashboard' after tick" in page.detail()
    page.press("Start again")
    page.wait_for_status("Running")
    page.wait_until(lambda: 0.0 < now(page) < 30.0)
    page.press("Stop")
    page.wait_for_status("Ended")


def test_the_page_of_a_run_that_was_killed_says_so_and_is_clean(dash, swing: Path) -> None:
    page = started(dash, swing)
    page.wait_until(lambda: len(page.chart("hinge tracking error")[0]) > 20)
    (child,) = children(page.dash.process.pid)
    os.kill(child, signal.SIGKILL)
    page.wait_for_status("The run is gone")
    page.wait_for_text("its process was killed by SIGKILL (9)")
    for name in ("Events", "Health", "View", "Gains"):
        page.open(name)
        page.tab.wait_for_timeout(200)
        assert not re.search(r"\b(nan|NaN|None|null|undefined|Traceback|Error)\b", page.text())
    t, error = page.chart("hinge tracking error")
    assert len(t) == len(error) > 10 and np.all(np.diff(t) > 0)
    page.press("Start again")
    page.wait_for_status("Running")
    assert page.errors == []


def children(pid: int) -> list[int]:
    """Processes that this one started and that run."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
