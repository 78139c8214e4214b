"""A headless browser for pages of `cosim dash`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.rows import NotMeasured

NAMES = ("chromium", "chromium-browser", "google-chrome")
# root needs no sandbox; a machine without a GPU renders in software
OPTIONS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--disable-gpu-compositing",
    "--disable-gpu-rasterization",
    "--disable-accelerated-2d-canvas",
]


@contextmanager
def headless_browser(*options: str) -> Iterator[Any]:
    """The browser, of playwright, with further options. Raises NotMeasured where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise NotMeasured("no browser: install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NotMeasured("playwright is not installed: pip install 'cosim[test]'") from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*OPTIONS, *options])
        try:
            yield browser
        finally:
            browser.close()
