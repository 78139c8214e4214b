"""A browser, and pages of `cosim dash` in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.browser import Dash, OpenedPage, browser_or_reason


@pytest.fixture(scope="session")
def browser() -> Iterator:
    if "PYTEST_XDIST_WORKER" in os.environ:
        # a page drawn without a GPU takes a whole core, and the browser an event loop that other tests would find
        pytest.skip("beside other tests; run them alone: pytest -n 0 tests/browser")
    with browser_or_reason() as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found


@pytest.fixture
def dash(browser) -> Iterator[Callable[..., OpenedPage]]:
    """Runs `cosim dash` with these words and opens its page."""
    opened: list[OpenedPage] = []

    def open_page(*words: str, width: int = 1280, height: int = 720) -> OpenedPage:
        opened.append(OpenedPage(Dash(*words), browser, width, height))
        return opened[-1]

    yield open_page
    for page in opened:
        page.close()


SWING = """\
name: swing
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 0, kd: 5, trajectory: {type: sine, amplitude: 0.5, frequency: 1 Hz, ramp: 0.5}}
guard: {stale: 1 s}
schedule: {duration: 300 s}
"""


@pytest.fixture
def swing(tmp_path: Path) -> Path:
    """A rig whose error depends on its gains."""
    path = tmp_path / "swing.yaml"
    path.write_text(SWING)
    return path


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("browser") / "arm.mcap"
    words = [sys.executable, "-m", "cosim", "run", "rigs/arm_sim.yaml", "--duration", "2", "--record", str(path)]
    subprocess.run(words, check=True, capture_output=True)
    return path
