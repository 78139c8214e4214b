"""The header in C of the code of a rig: sizes, places in the memory, signals, parameters, faults and prototypes."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from cosim.apps.deploy.fault_codes import fault_codes
from cosim.apps.deploy.identifiers import CName, check_names, macro
from cosim.apps.deploy.parameters import DeployedParameter, parameters_of
from cosim.apps.deploy.prototypes import Prototype, prototypes
from cosim.apps.deploy.tick_code import TickCode
from cosim.core.errors import SourceLocation
from cosim.rig.run.run_metadata import signal_units
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_model import TickModel

WIDTH = 100  # of comments
_JOINTS = "joints: elements of what is an array of joints"


class Macro(NamedTuple):
    """what: in the words of the rig, place: there, for the message where its name is taken."""

    name: str
    value: str
    about: str
    what: str
    place: SourceLocation | None = None

    @property
    def line(self) -> str:
        comment = f" /* {_comment(self.about)} */" if self.about else ""
        return f"#define {self.name} {self.value}{comment}"


def header(rig: WiredRig, code: TickCode) -> str:
    """The text of `NAME.h` of code with stages, C99 and C++.

    Raises InputErrors for names of the rig that are the same identifier in C, or a keyword.
    """
    groups, functions = _macros(rig, code), prototypes(rig.tick_model, code.name)
    _check_names(rig, groups, functions)
    guard, title = f"COSIM_{macro(code.name)}_H", f"Rig '{rig.spec.name}': {rig.spec.description}"
    lines = [*_paragraph(title), *_paragraph("Link with -lm. Numbers are in SI; places are elements of the memory.")]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>"]
    for heading, macros in groups.items():
        lines += ["", *_paragraph(heading), *(each.line for each in macros)]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for function in functions:
        lines += ["", *_paragraph(function.about), function.declaration]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _check_names(rig: WiredRig, groups: Mapping[str, Sequence[Macro]], functions: Sequence[Prototype]) -> None:
    """Raises InputErrors; where controllers or joints have the same name in C, of these alone."""
    check_names(CName(each.name, each.what, rig.place(each.key)) for each in functions)
    names = {
        heading: [CName(each.name, each.what, each.place or str(rig.spec.path)) for each in macros]
        for heading, macros in groups.items()
    }
    check_names(names[_JOINTS])
    check_names(chain.from_iterable(names.values()))


def _macros(rig: WiredRig, code: TickCode) -> Mapping[str, Sequence[Macro]]:
    """By their heading."""
    prefix, model = macro(code.name), rig.tick_model
    return {
        "sizes": _sizes(prefix, model, code),
        _JOINTS: _joints(rig, prefix),
        "places in the memory, and their sizes": _places(rig, prefix),
        "parameters: places in the memory": [_parameter(rig, prefix, each) for each in parameters_of(rig)],
        "signals: elements of what `signals` gives": _signals(rig, prefix),
        "controllers: due when tick % TICKS == PHASE": _periods(rig, prefix),
        "faults, of each joint at the place GUARD_FAULT; the largest one at FAULT": [
            Macro(
                f"{prefix}_FAULT_{macro(each.key)}",
                str(each.code) if each.code > 0 else f"({each.code})",
                each.about,
                f"fault '{each.key}'",
            )
            for each in fault_codes()
        ],
    }


def _sizes(prefix: str, model: TickModel, code: TickCode) -> list[Macro]:
    sizes = {
        "MEMORY": (code.size, "doubles that pass from tick to tick"),
        "SIGNALS": (len(model.signals.names), "doubles that `signals` gives"),
        "JOINTS": (model.nv, ""),
        "BODIES": (code.bodies, ""),
        "STEP": (repr(model.step), "s from tick to tick"),
    }
    return [Macro(f"{prefix}_{key}", str(value), about, f"size '{key}'") for key, (value, about) in sizes.items()]


def _joints(rig: WiredRig, prefix: str) -> list[Macro]:
    model = rig.plant.model
    return [
        Macro(
            f"{prefix}_JOINT_{macro(name)}", str(k), f"{name}, {unit}", f"joint '{name}'", rig.place(("joints", name))
        )
        for k, (name, unit) in enumerate(zip(model.dof_names, model.dof_units, strict=True))
    ]


def _places(rig: WiredRig, prefix: str) -> list[Macro]:
    places = {".".join(path): region for path, region in rig.tick_model.layout.places.items()}
    return [
        Macro(f"{prefix}_AT_{macro(name)}", str(where.start), " x ".join(map(str, shape)), f"place '{name}'")
        for name, (where, shape) in places.items()
        if where.start < where.stop
    ]


def _signals(rig: WiredRig, prefix: str) -> list[Macro]:
    owners = _controllers(rig)
    found = []
    for k, (name, unit) in enumerate(signal_units(rig).items()):
        owner = name.partition("/")[0]
        place = owners.get(owner) or rig.place(("joints", owner))
        found.append(Macro(f"{prefix}_SIGNAL_{macro(name)}", str(k), f"{name}, {unit}", f"signal '{name}'", place))
    return found


def _parameter(rig: WiredRig, prefix: str, parameter: DeployedParameter) -> Macro:
    limits = {"at least": parameter.least, "at most": parameter.greatest}
    bounds = [f"{word} {bound:g}" for word, bound in limits.items() if math.isfinite(bound)]
    facts = ", ".join([parameter.name, parameter.unit, *bounds, f"{parameter.value!r} in the rig"])
    return Macro(
        f"{prefix}_PARAMETER_{macro(parameter.name)}",
        str(parameter.place),
        f"{facts}: {parameter.about}" if parameter.about else facts,
        f"parameter '{parameter.name}'",
        _controllers(rig).get(parameter.name.partition(".")[0]),
    )


def _periods(rig: WiredRig, prefix: str) -> list[Macro]:
    places = _controllers(rig)
    return [
        Macro(
            f"{prefix}_CONTROLLER_{macro(loop.name)}_{key}",
            str(value),
            "",
            f"controller '{loop.name}'",
            places[loop.name],
        )
        for loop in rig.tick_model.loops
        for key, value in (("TICKS", loop.ticks), ("PHASE", loop.phase))
    ]


def _controllers(rig: WiredRig) -> dict[str, SourceLocation | None]:
    """The places of their names."""
    return {loop.name: rig.place(("controllers", k, "name")) for k, loop in enumerate(rig.tick_model.loops)}


def _paragraph(text: str) -> Iterable[str]:
    return (f"/* {_comment(line)} */" for line in textwrap.wrap(text, WIDTH))


def _comment(text: str) -> str:
    """Without the marks that begin or end a comment."""
    return re.sub(r"/(?=\*)|\*(?=/)", r"\g<0> ", text)
