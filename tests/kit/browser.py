"""A headless browser, and a page of `cosim dash` in it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.headless import headless_browser
from benchmarks.rows import NotMeasured

# whose names an attacker has directed to this machine
REBOUND = "--host-resolver-rules=MAP *.example 127.0.0.1"
SOON = READY = 120_000  # ms, for a busy machine
CHART = """title => {
    const charts = Object.values(window.__viserTestpoints?.uplots ?? {}).map(item => item.chart);
    const found = charts.find(chart => chart.root.querySelector('.u-title')?.textContent.startsWith(title));
    return found ? found.data.map(column => Array.from(column)) : [];
}"""
LOCAL = re.compile(r"^(data:|blob:|(https?|wss?)://(localhost|127\.0\.0\.1)[:/])")


@contextmanager
def browser_or_reason() -> Iterator[Any]:
    """The browser, or as text why there is none."""
    with ExitStack() as stack:
        try:
            browser = stack.enter_context(headless_browser(REBOUND))
        except NotMeasured as reason:
            browser = str(reason)
        yield browser


class Dash:
    """A process of `cosim dash`; url: of its page."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "cosim", "dash", *words, "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(r"http://\S+", line):
                self.url = found[0]
                return
        raise AssertionError(f"cosim dash ended: {''.join(self.lines)}")

    def close(self) -> None:
        """Ends by Ctrl-C, with the exit code 0."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(120) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


class OpenedPage:
    """tab: of playwright; external: addresses outside of this machine that the page asked for; errors: of its
    scripts."""

    def __init__(self, dash: Dash, browser: Any, width: int = 1280, height: int = 720) -> None:
        self.dash, self.external, self.errors = dash, [], []
        self.tab = browser.new_page(viewport={"width": width, "height": height})
        self.tab.on("request", self._note)
        self.tab.on("websocket", self._note)
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.goto(dash.url)
        self.tab.wait_for_selector("[data-status]", timeout=READY)

    def _note(self, request: Any) -> None:
        if not LOCAL.match(request.url):
            self.external.append(request.url)

    def wait_for_status(self, text: str, timeout: float = SOON) -> None:
        self.tab.wait_for_selector(f'[data-status="{text}"]', timeout=timeout)

    def wait_for_text(self, text: str, timeout: float = SOON) -> None:
        self.tab.get_by_text(text).first.wait_for(timeout=timeout)

    def press(self, button: str) -> None:
        self.tab.get_by_role("button", name=button, exact=True).click(timeout=SOON)

    def open(self, name: str) -> None:
        self.tab.get_by_role("tab", name=name, exact=True).click(timeout=SOON)

    def slide(self, value: float) -> None:
        """Write a time into the number beside the slider of a replay."""
        box = self.tab.locator("input[inputmode='decimal'], input[type='text']").first
        box.fill(str(value))
        box.press("Enter")

    def chart(self, title: str) -> list[list[float]]:
        """Times and curves of a chart, as the page draws them; title: how it begins."""
        return self.tab.evaluate(CHART, title)

    def wait_until(self, condition: Callable[[], bool], timeout: float = 120.0) -> None:
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, self.tab.inner_text("body")
            self.tab.wait_for_timeout(50)

    def set_number(self, label: str, value: float | str) -> None:
        """Type into the box of this label."""
        name = self.tab.locator("label").filter(has_text=re.compile(f"^{re.escape(label)}$")).first
        name.locator("xpath=ancestor::*[.//input][1]").locator("input").first.fill(str(value))

    def text(self) -> str:
        return self.tab.inner_text("body")

    def detail(self) -> str:
        """The second line of the state."""
        return self.tab.locator("[data-status] + div").inner_text()

    def picture(self, path: Path | None = None) -> bytes:
        """A screenshot, without the notification that rendering is done in software."""
        note = self.tab.locator(".mantine-Notification-closeButton")
        if note.count():
            note.first.click()
            self.tab.wait_for_timeout(500)
        return self.tab.screenshot(path=path)

    def close(self) -> None:
        self.tab.close()
        self.dash.close()
