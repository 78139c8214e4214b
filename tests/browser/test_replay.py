"""A recording in the browser."""

import re
from pathlib import Path


def test_the_slider_moves_the_time_the_robot_and_the_charts(dash, recording: Path) -> None:
    page = dash(str(recording))
    page.wait_for_status("Replay")
    assert page.detail() == "arm_sim · t = 0.00 s"
    page.tab.wait_for_selector(".uplot")
    page.tab.wait_for_timeout(2000)
    before = page.picture()
    for t in (0.3, 1.9, 0.8, 1.4, 1.2):
        page.slide(t)
        page.wait_for_text(f"arm_sim · t = {t:.2f} s")
    page.wait_until(lambda: page.picture() != before)
    assert page.external == []


def test_playing_ends_at_the_end(dash, recording: Path) -> None:
    page = dash(str(recording))
    page.press("4×")
    page.wait_for_text("arm_sim · t = 2.00 s")
    page.tab.get_by_role("button", name="Play", exact=True).wait_for()
    assert re.fullmatch(r"arm_sim · t = 2\.00 s", page.detail())


def test_the_panels_show_the_energy_balance_and_the_events(dash, recording: Path) -> None:
    page = dash(str(recording))
    page.slide(2)
    page.open("Health")
    page.wait_for_text("residual")
    page.open("Events")
    page.tab.get_by_text("compiled engine; slowest task").wait_for()


def test_dark_is_dark_and_a_tablet_has_the_charts_under_the_controls(dash, recording: Path) -> None:
    page = dash(str(recording), "--dark", width=820, height=1180)
    chart, button = page.tab.locator(".uplot").first, page.tab.get_by_role("button", name="Play", exact=True)
    chart.wait_for()
    page.tab.wait_for_timeout(1500)
    upper, lower = button.bounding_box(), chart.bounding_box()
    assert upper is not None and lower is not None
    assert lower["y"] > upper["y"] and min(upper["x"], lower["x"]) > 400
    scheme = page.tab.evaluate("document.documentElement.getAttribute('data-mantine-color-scheme')")
    assert scheme == "dark"
