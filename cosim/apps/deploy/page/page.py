"""The page of a rig: its sources, its facts and its module in one file.

The scene is solids on bodies, without files of meshes. It states why a run was stopped as `execution.stop_reason` does,
from templates, names and bounds; it does not look for the cause of a divergence, but names the usual fix.
"""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from cosim.apps.deploy.page.references import with_parametrised_references
from cosim.apps.deploy.wasm_rig import wasm_rig
from cosim.control.bumpless_start import BumplessStart
from cosim.control.limits import BITS, CODES, LIMIT_OF, NOT_FINITE, STALE
from cosim.core.compile.object_code import CodeTarget
from cosim.core.errors import InputError
from cosim.core.types import Signal
from cosim.core.units import quantity_unit, unit_sign
from cosim.execution.rig_state import PLAUSIBLE
from cosim.execution.stop_reason import OVERFLOWING, fault_templates, fix_of_divergence
from cosim.output.events import alarm_texts
from cosim.output.scene.scene import ROLE_COLORS, TOUCHING, Scene, Shape
from cosim.output.signal_charts import charts_of
from cosim.output.view3d import contact_arrows as arrows
from cosim.output.view3d.view import contact_columns
from cosim.rig.scene import scene_of_page
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_functions import FIRST_OF_PARTS
from cosim.simulation.tick.tick_model import TickModel

# in the order in which they are put together: each uses only what stands before it, and what start.js has
SCRIPTS = (
    "libm", "general_format", "gain_range", "matrices", "solids", "elements", "simulation", "stop_reason", "alarms",
    "history", "player", "look", "camera", "view3d", "curves", "chart", "panel", "main",
)  # fmt: skip
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_FUNCTION = re.compile(r"^  (\w+): ", re.MULTILINE)
DIGITS = 5  # of lengths and quaternions
SMALLEST_BODY = 0.06  # largest edge of a body over the extent of the mechanism, so that a point mass is seen


def page_of(rig: WiredRig, name: str, machine: CodeTarget) -> str:
    """The file, of a rig that `exportable.check_rig` accepts; name: with which the functions of the module begin.

    Raises InputError for a function of C that the page does not have."""
    references = with_parametrised_references(rig)
    module, facts = wasm_rig(references.rig, name, machine)
    check_functions(module.imports)
    spec = rig.spec
    facts |= {
        "duration": spec.schedule.duration_ns * 1e-9,
        "parameters": [_with_shown_unit(one) for one in (*references.parameters, *facts["parameters"])],
        "charts": chart_facts(references.rig.tick_model.signals.declared),
        "notes": references.notes,
        "scene": scene_facts(scene_of_page(rig), list(references.rig.tick_model.signals.declared)),
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


def _with_shown_unit(parameter: Mapping[str, Any]) -> dict[str, Any]:
    return {**parameter, "shown_unit": unit_sign(parameter["unit"])}


def chart_facts(declared: Mapping[str, Signal]) -> list[dict[str, Any]]:
    """The charts of all signals by their declarations; a curve is of the signals at the places `of`."""
    places = {name: k for k, name in enumerate(declared)}
    charts = charts_of({name: signal.unit for name, signal in declared.items()}, declared)
    return [
        {
            "owner": chart.owner,
            "title": chart.title,
            "unit": chart.unit,
            "curves": [
                {
                    "label": curve.label,
                    "color": f"light-dark({curve.color}, {curve.dark})",
                    "dashed": curve.dashed,
                    "width": curve.width,
                    "of": [places[signal] for signal in curve.signals],
                }
                for curve in chart.curves
            ],
        }
        for own in charts.values()
        for chart in own.values()
    ]


def scene_facts(scene: Scene, signals: Sequence[str] = ()) -> dict[str, Any]:
    """Body 0 is the ground; body k ≥ 1 is row k − 1 of the poses of the module. signals: names in their order."""
    return {
        "bodies": [
            {"name": body.name, "shapes": _shapes(body.shapes, scene.extent, not k)}
            for k, body in enumerate(scene.bodies)
        ],
        "springs": [[[body, _rounded(point)] for body, point in (one.start, one.end)] for one in scene.springs],
        "extent": _rounded([scene.extent])[0],
        "floor": _rounded([scene.floor])[0],
        "forces": _forces(scene, signals),
    }


def _forces(scene: Scene, signals: Sequence[str]) -> dict[str, Any]:
    """How the forces of contacts are drawn, see `contact_arrows`."""
    return {
        "contacts": [{"state": of.state, "force": of.force, "point": of.point} for of in contact_columns(signals)],
        "open": arrows.OPEN,
        "slides": arrows.SLIDES,
        "sticking": [*(part / 255.0 for part in TOUCHING), 1.0],
        "sliding": [*(part / 255.0 for part in arrows.SLIDE_COLOR), 1.0],
        "length": scene.force_length,
        "longest": _rounded([arrows.LONGEST * scene.extent])[0],
        "diameters": [arrows.SHAFT, arrows.HEAD, arrows.DOT],
        "head": arrows.HEAD_PART,
    }


def _shapes(shapes: Sequence[Shape], extent: float, stands: bool) -> list[dict[str, Any]]:
    drawn = _drawn(shapes)
    largest = max((edge for shape in drawn for edge in shape.size), default=0.0)
    enlarged = SMALLEST_BODY * extent / largest if 0.0 < largest < SMALLEST_BODY * extent else 1.0
    return [_shape(shape, enlarged) | {"floor": stands and shape.role == "contact"} for shape in drawn]


def _drawn(shapes: Sequence[Shape]) -> Sequence[Shape]:
    """The box of the inertia only where a body has nothing else."""
    own = [shape for shape in shapes if shape.role != "inertia"]
    return own or shapes


def _shape(shape: Shape, enlarged: float) -> dict[str, Any]:
    color = [part / 255.0 for part in ROLE_COLORS[shape.role]] + [1.0] if shape.color is None else shape.color
    return {
        "kind": shape.kind,
        "position": _rounded(shape.pose.position),
        "wxyz": _rounded(shape.pose.wxyz),
        "size": _rounded([enlarged * edge for edge in shape.size]),
        "color": [round(part, 3) for part in color],
    }


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def stop_facts(model: TickModel) -> dict[str, Any]:
    names, units, guard = model.plant.model.dof_names, model.plant.model.dof_units, model.guard
    joints = [
        {
            "name": name,
            "unit": unit,
            "effort_unit": quantity_unit("joint effort", unit),
            "diverged": fix_of_divergence(model, name),
            "controller": _controller(model, k),
        }
        for k, (name, unit) in enumerate(zip(names, units, strict=True))
    ]
    return {
        "joints": joints,
        "begun_at": BumplessStart.size(len(names)),  # of `bumpless_start`: the time of the controlled stop behind it
        "stale": [f"{1e3 * float(limit):.6g}" for limit in guard.stale],
        "limits": {str(code): _limit(model, key) for key, code in CODES.items() if _bounded(model, key)},
        "alarms": [{"joint": k, "bit": BITS[key], "text": text} for (k, key), text in alarm_texts(model).items()],
        "codes": {"stale": STALE, "not_finite": NOT_FINITE},
        "parts_from": FIRST_OF_PARTS,
        "others": {f"{code:g}": text for code, text in fault_templates(model).items()},
        **_names(model),
        "overflowing": OVERFLOWING,
        "plausible": PLAUSIBLE,
    }


def _controller(model: TickModel, k: int) -> dict[str, Any] | None:
    """Which controller commands joint k, and as which of its joints."""
    for loop in model.loops:
        for place in np.flatnonzero(loop.index == k):
            return {"name": loop.name, "place": int(place)}
    return None


def _bounded(model: TickModel, key: str) -> bool:
    return any(np.isfinite(model.guard.bounds[name]).any() for name in LIMIT_OF[key].bound_keys)


def _limit(model: TickModel, key: str) -> dict[str, Any]:
    row, bounds = LIMIT_OF[key], model.guard.bounds
    units = model.plant.model.dof_units
    shown = [row.show([float(bounds[name][k]) for name in row.bound_keys], unit) for k, unit in enumerate(units)]
    return {"reason": row.reason, "controlled_stop": row.controlled_stop, "bounds": shown}


def _names(model: TickModel) -> dict[str, Any]:
    """Of what these templates name, in the order of the memory."""
    events = [trigger.name for trigger in model.plant.modes.indicators]
    if (coupling := model.coupling) is None:
        return {"events": events, "bonds": [], "outputs": []}
    bonds = [
        {"name": bond.name, "limit": float(limit) if np.isfinite(limit) else None}
        for bond, limit in zip(coupling.couplings.bonds, coupling.residual_limits, strict=True)
    ]
    outputs = [
        {"name": "/".join(path), "at": where.start, "size": where.stop - where.start}
        for path, (where, _) in model.coupled_step.master.outputs.places.items()
    ]
    return {"events": events, "bonds": bonds, "outputs": outputs}
