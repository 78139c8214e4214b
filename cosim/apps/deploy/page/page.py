"""The page of a rig: its sources, its facts and its module in one file."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Sequence
from importlib.resources import files

from cosim.apps.deploy.page.references import with_parametrised_references
from cosim.apps.deploy.page.scene_facts import scene_facts
from cosim.apps.deploy.page.stop_facts import stop_facts
from cosim.apps.deploy.wasm_rig import wasm_rig
from cosim.core.compile.object_code import CodeTarget
from cosim.core.errors import InputError
from cosim.rig.scene import scene_of_page
from cosim.rig.wiring.wired_rig import WiredRig

# in the order in which they are put together: each uses only what stands before it, and what start.js has
SCRIPTS = (
    "libm", "general_format", "gain_range", "matrices", "solids", "elements", "simulation", "stop_reason", "alarms",
    "history", "player", "look", "camera", "view3d", "curves", "chart", "panel", "main",
)  # fmt: skip
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_FUNCTION = re.compile(r"^  (\w+): ", re.MULTILINE)


def page_of(rig: WiredRig, name: str, machine: CodeTarget) -> str:
    """The file, of a rig that `exportable.check_rig` accepts; name: with which the functions of the module begin.

    Raises InputError for a function of C that the page does not have."""
    references = with_parametrised_references(rig)
    module, facts = wasm_rig(references.rig, name, machine)
    check_functions(module.imports)
    spec = rig.spec
    facts |= {
        "duration": spec.schedule.duration_ns * 1e-9,
        "parameters": [*references.parameters, *facts["parameters"]],
        "notes": references.notes,
        "scene": scene_facts(scene_of_page(rig)),
        "stop": stop_facts(references.rig.tick_model),
    }
    texts = {
        "title": spec.name,
        "about": spec.description,
        "version": facts["cosim"],
        "step": f"{1e3 * facts['step']:g} ms",
    }
    parts = {
        "style": stripped(source("page.css")),
        "start": stripped(source("start.js")),
        "script": _packed(scripts().encode()),
        "notes": "".join(f'<p class="note">{html.escape(note)}</p>' for note in references.notes),
        "facts": _packed(json.dumps(facts, separators=(",", ":"), allow_nan=False).encode()),
        "module": _packed(module.code),
    }
    parts |= {key: html.escape(text) for key, text in texts.items()}
    return _PLACE.sub(lambda found: parts[found[1]], stripped(source("page.html")))


def scripts() -> str:
    """Those that a page unpacks when it is opened, in one block."""
    texts = "\n".join(stripped(source(f"{name}.js")) for name in SCRIPTS)
    return f'"use strict";\n{{\n{texts}\n}}\n'


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def check_functions(needed: Sequence[str]) -> None:
    """Raises InputError for functions of C that the page does not have."""
    if missing := sorted(set(needed) - set(known_functions())):
        names = ", ".join(f"'{name}'" for name in missing)
        what = f"the ticks need {names}, which a page does not have"
        raise InputError(
            f"{what}; use --target wasm and give it to the module, or compute it with cosim.plugin.ops", "--target"
        )


def known_functions() -> tuple[str, ...]:
    """The functions of C that a page gives to a module."""
    return tuple(_FUNCTION.findall(source("libm.js").partition("const LIBM = {")[2]))


def source(name: str) -> str:
    """The text of a file of the page."""
    return files("cosim.apps.deploy.page").joinpath("web", name).read_text(encoding="utf-8")


def stripped(text: str) -> str:
    """Without indentation, empty lines, and lines that are a comment as a whole."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//") and not _is_comment(line))


def _is_comment(line: str) -> bool:
    return line.startswith("/*") and line.endswith("*/")
