"""The dashboard in a headless browser: its first picture, and how soon a moved slider acts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.headless import headless_browser
from benchmarks.paired_timing import Budget, Samples
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target
from cosim.core.access.private_folder import private_folder
from cosim.core.errors import RunError
from cosim.output.client.subscriber import Subscriber, subscribe

SIZE = {"width": 1280, "height": 720}
PATIENCE = 60_000  # ms
MOVES = 20  # of the slider
BETWEEN = 0.25  # s
DRAWN = "window.__viserTestpoints?.rendererInfo?.render.triangles > 1000"  # more than a grid has
NOTE_KEYS = "addEventListener('keydown', () => window.pressed = performance.timeOrigin + performance.now(), true)"


@contextmanager
def command(*words: str) -> Iterator[subprocess.Popen]:
    """A process of `cosim`, ended by Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cosim", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def address_of(process: subprocess.Popen) -> str:
    """Of the page that the process serves. Raises RunError if it ends before."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise RunError(f"cosim dash ended: {''.join(lines[-1:]).strip()}")


def first_picture(budget: Budget) -> Measurement:
    """From the start of the command until the robot is drawn. The first start fills the caches."""
    rig, spent, shown = str(sample_rig()), [], []
    need_viser()
    with headless_browser() as browser:
        for _ in range(budget.starts + 1):
            begun = time.monotonic()
            with command("dash", rig, "--port", "0") as dash:
                url = address_of(dash)
                shown.append(time.monotonic() - begun)
                page = browser.new_page(viewport=SIZE)
                page.goto(url, wait_until="commit")
                page.wait_for_function(DRAWN, timeout=PATIENCE)
                spent.append(time.monotonic() - begun)
                page.close()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    note = f"address after {np.median(shown[1:]):.2g} s; drawn without a GPU, {load:.1f} processes per CPU at the end"
    return Measurement(Samples(np.array(spent[1:])), note=note)


def slider(budget: Budget) -> Measurement:
    """From a key on the slider of a gain until a sample of a tick with the new value has come from the stream."""
    rig, folder = str(sample_rig()), private_folder()
    stream, control = (f"ipc://{folder}/bench-{os.getpid()}-{name}" for name in ("stream", "control"))
    need_viser()
    run = ["run", rig, "--realtime", "--duration", "300", "--telemetry", stream, "--control", control]
    with (
        headless_browser() as browser,
        command(*run, "--set", "telemetry.rate=200") as _,
        command("dash", stream, "--port", "0", "--frame-rate", "2") as dash,
        subscribe(stream, every=True) as samples,
    ):
        page = browser.new_page(viewport=SIZE)
        page.goto(address_of(dash), wait_until="commit")
        page.get_by_role("button", name="Take control").click(timeout=PATIENCE)
        page.get_by_role("button", name="Release control").wait_for(timeout=PATIENCE)
        page.wait_for_timeout(1000)  # until the sliders can be moved
        page.evaluate(NOTE_KEYS)
        times = [_moved(page, samples) for _ in range(budget.of(MOVES))]
        page.close()
    return Measurement(Samples(np.array(times)), note=f"at most {max(times) * 1e3:.0f} ms of {len(times)}")


def _moved(page: Any, samples: Subscriber) -> float:
    """Seconds from a key on the first slider to the first sample with its effect."""
    time.sleep(BETWEEN)
    while samples.receive(0.0) is not None:
        pass
    samples.events.clear()
    page.get_by_role("slider").first.press("ArrowRight")
    until, applied = time.monotonic() + 10.0, np.inf
    while time.monotonic() < until:
        sample = samples.receive(0.1)
        applied = min([applied, *(event["t"] for event in samples.events if "set by" in event["event"])])
        if sample is not None and sample.t >= applied:
            return time.time() - page.evaluate("window.pressed") / 1e3
    raise RunError("a moved slider had no effect within 10 s")


def need_viser() -> None:
    try:
        import viser  # noqa: F401
    except ImportError:
        raise NotMeasured("viser is not installed: pip install 'cosim[dash]'") from None


CASES = (
    BenchCase(
        "first picture",
        "cosim dash ur5_sim with the inputs of an earlier start: until a browser has drawn the robot",
        first_picture,
        unit="s",
        target=Target("ours", 3.0, at_most=True),
    ),
    BenchCase(
        "slider",
        "a moved gain of a page: until a sample with its effect is in the stream",
        slider,
        unit="ms",
        target=Target("ours", 100.0, at_most=True),
    ),
)
