"""Pictures of the dashboard for the documentation: `python -m tests.kit.screenshots`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.kit.browser import Dash, OpenedPage, browser_or_reason

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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, browser_or_reason() as browser:
        if isinstance(browser, str):
            sys.exit(browser)
        run(browser, FOLDER / "dashboard_light.png")
        file = str(Path(folder) / "ur5.mcap")
        subprocess.run([sys.executable, "-m", "cosim", "run", RIG, "--record", file], check=True)
        recording(browser, FOLDER / "dashboard_dark.png", file)


if __name__ == "__main__":
    main()
