"""Pictures of the dashboard and of a page for the documentation: `python -m tests.kit.screenshots`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.kit.browser import Dash, OpenedPage, browser_or_reason
from tests.kit.rig_page import RigPage, built_page

FOLDER = Path("docs") / "howto"
RIG = "rigs/ur5_sim.yaml"
TIME = 2.5  # s, of the shown motion
SETTLED = 3000  # ms until everything is drawn


def run(browser: Any, path: Path) -> None:
    """A run that was paused in its motion, with a gain that was changed."""
    page = OpenedPage(Dash(RIG, "--frame-rate", "5"), browser)
    page.wait_for_status("Ready to start", timeout=60_000)
    page.tab.wait_for_selector(".uplot")
    page.set_number("N·m/rad", 3500)
    page.tab.wait_for_timeout(SETTLED)
    page.press("Start")
    page.wait_for_status("Running")
    page.wait_until(lambda: page.chart("shoulder_pan_joint position")[0][-1] > TIME)
    page.press("Pause")
    page.wait_for_status("Paused")
    page.tab.wait_for_timeout(SETTLED)
    page.picture(path)
    page.close()


def recording(browser: Any, path: Path, file: str) -> None:
    page = OpenedPage(Dash(file, "--dark"), browser)
    page.tab.wait_for_selector(".uplot")
    page.slide(TIME)
    page.wait_for_text(f"t = {TIME:.2f} s")
    page.open("Health")
    page.tab.wait_for_timeout(SETTLED)
    page.picture(path)
    page.close()


def simulated(browser: Any, light: Path, phone: Path) -> None:
    """A page of a rig that ran once, and again with a gain that was changed; and on a phone, paused in its motion."""
    with tempfile.TemporaryDirectory() as folder:
        file = built_page(Path(RIG), Path(folder))
        page = RigPage(browser, file, 1280, 860)
        page.do("rig.take(5000), rig.reset(), rig.set('arm.kp/shoulder_lift_joint', 1200), rig.take(2500)")
        page.tab.wait_for_timeout(500)
        page.tab.screenshot(path=light)
        page.close()
        page = RigPage(browser, file, 390, 844, color_scheme="dark", has_touch=True, is_mobile=True)
        page.do("rig.take(2000)")
        page.tab.wait_for_timeout(500)
        page.tab.screenshot(path=phone)
        page.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, browser_or_reason() as browser:
        if isinstance(browser, str):
            sys.exit(browser)
        simulated(browser, FOLDER / "page_light.png", FOLDER / "page_phone.png")
        run(browser, FOLDER / "dashboard_light.png")
        file = str(Path(folder) / "ur5.mcap")
        subprocess.run([sys.executable, "-m", "cosim", "run", RIG, "--record", file], check=True)
        recording(browser, FOLDER / "dashboard_dark.png", file)


if __name__ == "__main__":
    main()
