"""The page of a rig: its size, its first picture and its ticks in a headless browser."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.headless import headless_browser
from benchmarks.paired_timing import Budget, Samples
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, Target
from cosim import load_rig
from cosim.apps.deploy.page.page import page_of
from cosim.core.compile.targets import targets
from cosim.core.errors import RunError

SIZE = {"width": 1280, "height": 720}
DRAWN = "[data-drawn]"
PATIENCE = 60_000  # ms
TICKS = 5000  # a run of the rig
# of a page at its start: seconds that the browser takes for so many ticks
TIMED = """n => { rig.reset(); const begun = performance.now(); const done = rig.take(n);
    return [done, (performance.now() - begun) / 1e3]; }"""


@contextmanager
def page_file() -> Iterator[Path]:
    """The page of the sample rig."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(page_of(load_rig(sample_rig(), interpret=False), "rig", targets()["wasm"]), encoding="utf-8")
        yield file


def time_until_drawn(page: Any, file: Path) -> float:
    """Seconds until it is drawn."""
    begun = time.monotonic()
    page.goto(f"{file.as_uri()}#paused", wait_until="commit")
    page.wait_for_selector(DRAWN, timeout=PATIENCE, state="attached")
    return time.monotonic() - begun


def size(budget: Budget) -> Measurement:
    """Of the file in bytes."""
    with page_file() as file:
        return Measurement(Samples(np.array([float(file.stat().st_size)])))


def first_picture(budget: Budget) -> Measurement:
    """From the address in an empty tab until mechanism and charts are drawn."""
    spent = []
    with headless_browser() as browser, page_file() as file:
        for _ in range(budget.starts + 1):
            page = browser.new_page(viewport=SIZE)
            spent.append(time_until_drawn(page, file))
            page.close()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    note = f"drawn without a GPU, {load:.1f} processes per CPU at the end"
    return Measurement(Samples(np.array(spent[1:])), note=note)


def times_real_time(budget: Budget) -> Measurement:
    """Simulated seconds in one of the browser, with the samples of the charts. Raises RunError for a run that stops."""
    rig = load_rig(sample_rig(), interpret=False)
    factors = []
    with headless_browser() as browser, page_file() as file:
        page = browser.new_page(viewport=SIZE)
        time_until_drawn(page, file)
        for _ in range(budget.starts + 1):
            done, seconds = page.evaluate(TIMED, TICKS)
            if done < TICKS:
                raise RunError("the guard stopped the page while it was timed", str(sample_rig()))
            factors.append(TICKS * rig.tick_model.step / seconds)
        page.close()
    return Measurement(Samples(np.array(factors[1:])))


CASES = (
    BenchCase(
        "page size ur5_sim",
        "the UR5 with six drives as a web page",
        size,
        unit="kB",
        target=Target("ours", 100.0, at_most=True),
    ),
    BenchCase(
        "page first picture",
        "its page in headless Chromium: until mechanism and charts are drawn",
        first_picture,
        unit="s",
        target=Target("ours", 1.0, at_most=True),
    ),
    BenchCase(
        "page ticks ur5_sim",
        "its ticks in headless Chromium, with the samples of its charts: simulated over passed time",
        times_real_time,
        unit="x real time",
        target=Target("ours", 50.0),
    ),
)
