"""The page of a rig: its sources, its facts and its module in one file."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from cosim.errors import InputError

# in the order in which they are put together: each uses only what stands before it
SCRIPTS = (
    "libm", "general_format", "gain_range", "matrices", "solids", "elements", "simulation", "verdict", "history",
    "player", "look", "camera", "view3d", "curves", "chart", "panel", "main",
)  # fmt: skip
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_FUNCTION = re.compile(r"^  (\w+): ", re.MULTILINE)


def page(module: bytes, facts: Mapping[str, Any], needed: Sequence[str]) -> str:
    """The file. module: wasm; facts: its description with what `page_facts` adds; needed: names of the functions that
    it imports. Raises InputError for one that the page does not have."""
    check_functions(needed)
    parts = {
        "name": html.escape(facts["name"]),
        "description": html.escape(facts["about"]),
        "rig": html.escape(facts["rig"]),
        "version": html.escape(facts["cosim"]),
        "step": f"{1e3 * facts['step']:g} ms",
        "notes": "".join(f'<p class="note">{html.escape(note)}</p>' for note in facts["notes"]),
        "style": stripped(source("page.css")),
        "script": "\n".join(stripped(source(f"{name}.js")) for name in SCRIPTS),
        # no end of a script in it
        "facts": json.dumps(facts, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        "module": base64.b64encode(zlib.compress(module, 9)).decode("ascii"),
    }
    return _PLACE.sub(lambda found: parts[found[1]], stripped(source("page.html")))


def check_functions(needed: Sequence[str]) -> None:
    """Raises InputError for functions of C that the page does not have."""
    if missing := sorted(set(needed) - set(known_functions())):
        names = ", ".join(f"'{name}'" for name in missing)
        what = f"the ticks need {names}, which a page does not have"
        raise InputError(f"{what}; use --target wasm and give it to the module, or compute it with cosim.ops", "--target")


def known_functions() -> tuple[str, ...]:
    """The functions of C that a page gives to a module."""
    return tuple(_FUNCTION.findall(source("libm.js").partition("const LIBM = {")[2]))


def source(name: str) -> str:
    """The text of a file of the page."""
    return files("cosim.deploy.page").joinpath("web", name).read_text(encoding="utf-8")


def stripped(text: str) -> str:
    """Without indentation, empty lines, and lines that are a comment as a whole."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//") and not _is_comment(line))


def _is_comment(line: str) -> bool:
    return line.startswith("/*") and line.endswith("*/")
