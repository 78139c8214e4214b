"""Pages of rigs that `cosim export code --target page` writes, opened in a headless browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cosim.apps.deploy.command import Choices, build
from cosim.apps.deploy.page.page import source

DRAWN = 60_000  # ms


def built_page(rig: Path, folder: Path, overrides: Sequence[str] = ()) -> Path:
    build(rig, overrides, "page", folder, Choices())
    return folder / f"{rig.stem}.html"


class RigPage:
    """A paused page at its start. requests: addresses that it asked for besides its own; errors: of its scripts."""

    def __init__(self, browser: Any, file: Path, width: int = 1280, height: int = 800, **options: Any) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.tab = browser.new_page(viewport={"width": width, "height": height}, **options)
        self.address = f"{file.resolve().as_uri()}#paused"
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.goto(self.address)
        self.tab.wait_for_selector("[data-drawn]", timeout=DRAWN)
        self.wait_for_frames()

    def wait_for_frames(self) -> None:
        """Until what was done is drawn. Before the first frame is, keys and clicks are lost: a browser drops them until
        then, and `data-drawn` is set while that frame is being made."""
        self.tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def do(self, script: str, *values: Any) -> Any:
        """The value of a script with `rig` and `values`."""
        return self.tab.evaluate(f"values => ({script})", list(values))

    @property
    def state(self) -> dict[str, Any]:
        return self.do("rig.state()")

    def slider(self, name: str) -> Any:
        return self.tab.locator(f'input[type=range][aria-label^="{name} "]')

    def field(self, name: str) -> Any:
        return self.tab.locator(f'input[type=number][aria-label^="{name} "]')

    def press(self, button: str) -> None:
        self.tab.get_by_role("button", name=button, exact=True).click()

    def pixels(self, selector: str) -> int:
        """How many colours a part of the page has."""
        return len(self._picture(selector).getcolors(1 << 24) or ())

    def hues(self, selector: str, lowest: float, highest: float) -> int:
        """How many pixels of a part of the page have a strong colour of these hues [deg]."""
        hue, saturation, value = (
            np.asarray(part, dtype=float) for part in self._picture(selector).convert("HSV").split()
        )
        strong = (saturation > 128) & (value > 64)
        return int(np.sum(strong & (hue * 360 / 256 >= lowest) & (hue * 360 / 256 <= highest)))

    def _picture(self, selector: str) -> Any:
        import io

        from PIL import Image

        return Image.open(io.BytesIO(self.tab.locator(selector).first.screenshot())).convert("RGB")

    def close(self) -> None:
        self.tab.close()


def evaluated(tab: Any, files: Sequence[str], expression: str, *values: Any) -> Any:
    """An expression of these scripts of a page and of `values`, in the browser."""
    texts = "\n".join(source(f"{name}.js") for name in files)
    return tab.evaluate(f"values => {{ {texts}\nreturn {expression}; }}", list(values))
