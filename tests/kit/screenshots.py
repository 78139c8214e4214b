"""Pictures of the dashboard for the documentation: `python -m tests.kit.screenshots`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kit.browser import Dash, OpenedPage, browser_or_reason

FOLDER = Path("docs") / "howto"
RIG = "rigs/ur5_sim.yaml"
TIME = 2.5  # s, of the shown motion
SETTLED = 3000  # ms until everything is drawn


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, browser_or_reason() as browser:
        if isinstance(browser, str):
            sys.exit(browser)
        recording = str(Path(folder) / "ur5.mcap")
        subprocess.run([sys.executable, "-m", "cosim", "run", RIG, "--record", recording], check=True)
        for name, options in (("light", ()), ("dark", ("--dark",))):
            page = OpenedPage(Dash(recording, *options), browser)
            page.tab.wait_for_selector(".uplot")
            page.slide(TIME)
            page.wait_for_text(f"t = {TIME:.2f} s")
            page.open("Health")
            page.tab.wait_for_timeout(SETTLED)
            page.picture(FOLDER / f"dashboard_{name}.png")
            page.close()


if __name__ == "__main__":
    main()
