"""The header in C of the code of a rig: sizes, places in the memory, signals, parameters, faults and prototypes."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cosim.deploy.identifiers import CName, check_names, identifier, macro
from cosim.deploy.parameters import DeployedParameter, parameters_of
from cosim.deploy.prototypes import prototypes
from cosim.deploy.tick_code import TickCode
from cosim.deploy.verdicts import verdicts
from cosim.errors import SourceLocation
from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.outline import signal_units

WIDTH = 100  # of comments


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


def header(rig: WiredRig, code: TickCode, stages: bool) -> str:
    """The text of `NAME.h`, C99 and C++; stages: whether the code has them.

    Raises InputErrors for names of the rig that are the same identifier in C, or a keyword.
    """
    groups = _macros(rig, code, stages)
    functions = prototypes(rig.tick_model, code.name, stages)
    names = [CName(each.name, each.what, each.place) for _, macros in groups for each in macros]
    places = {f"{code.name}_controller_{identifier(name)}": (name, place) for name, place in _controllers(rig)}
    for function in functions:
        controller, place = places.get(function.name, ("", None))
        what = f"controller '{controller}'" if controller else f"function '{function.name}'"
        names.append(CName(function.name, what, place))
    check_names([*names, *_same_controllers(rig, code)])
    guard = f"COSIM_{macro(code.name)}_H"
    lines = [
        f"/* {_comment(line)} */" for line in textwrap.wrap(f"Rig '{rig.spec.name}': {rig.spec.description}", WIDTH)
    ]
    lines += ["/* Link with -lm. Numbers are in SI; places are indices of doubles in the memory. */"]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>"]
    for title, macros in groups:
        lines += ["", f"/* {title} */", *(each.line for each in macros)] if macros else []
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for function in functions:
        lines += ["", *_paragraph(function.about), function.declaration]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _controllers(rig: WiredRig) -> Iterator[tuple[str, SourceLocation | None]]:
    for number, loop in enumerate(rig.tick_model.loops):
        yield loop.name, rig.place(("controllers", number, "name"))


def _same_controllers(rig: WiredRig, code: TickCode) -> Iterator[CName]:
    """A function of two controllers is declared once, so that the second one is found here."""
    return iter(())


def _macros(rig: WiredRig, code: TickCode, stages: bool) -> Sequence[tuple[str, Sequence[Macro]]]:
    """By title."""
    prefix, model = macro(code.name), rig.tick_model
    sizes = {
        "MEMORY": (code.size, "doubles that pass from tick to tick"),
        "SIGNALS": (len(model.signals.names), "doubles that the signals of a tick are"),
        "JOINTS": (model.nv, ""),
        "BODIES": (code.bodies, ""),
        "STEP": (repr(model.step), "s from tick to tick"),
    }
    dofs = enumerate(zip(model.plant.model.dof_names, model.plant.model.dof_units, strict=True))
    return [
        ("sizes", [Macro(f"{prefix}_{key}", str(value), about, key.lower()) for key, (value, about) in sizes.items()]),
        (
            "joints: element of each array with as many elements as there are joints",
            [
                Macro(
                    f"{prefix}_JOINT_{macro(name)}", str(k), f"{name}, {unit}", f"joint '{name}'", _of_joint(rig, name)
                )
                for k, (name, unit) in dofs
            ],
        ),
        ("places in the memory, and their shapes where they are no single numbers", list(_places(rig, prefix))),
        ("parameters: places in the memory", [_parameter(rig, prefix, each) for each in parameters_of(rig)]),
        (
            "signals: elements of what is told of a tick",
            [
                Macro(
                    f"{prefix}_SIGNAL_{macro(name)}",
                    str(k),
                    f"{name}, {unit}",
                    f"signal '{name}'",
                    _of_signal(rig, name),
                )
                for k, (name, unit) in enumerate(signal_units(rig).items())
            ],
        ),
        ("controllers: the ticks in which they are due", list(_periods(rig, prefix)) if stages else []),
        (
            "why the rig is stopped: at the place FAULT, and of each joint at the place GUARD_FAULT",
            [
                Macro(f"{prefix}_{'FAULT_' * (each.code > 0)}{macro(each.key)}", str(each.code), each.text, each.key)
                for each in verdicts()
                if stages or each.code > 0
            ],
        ),
    ]


def _places(rig: WiredRig, prefix: str) -> Iterator[Macro]:
    for path, (where, shape) in rig.tick_model.layout.places.items():
        name = ".".join(path)
        about = " x ".join(map(str, shape))
        yield Macro(f"{prefix}_AT_{macro(name)}", str(where.start), about, f"place '{name}'", rig.place(path))


def _parameter(rig: WiredRig, prefix: str, parameter: DeployedParameter) -> Macro:
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("at least", parameter.least), ("at most", parameter.greatest))
        if math.isfinite(bound)
    ]
    about = ", ".join([parameter.name, parameter.unit, *bounds, f"{parameter.value!r} in the rig"])
    if parameter.about:
        about = f"{about}: {parameter.about}"
    owner = parameter.name.partition(".")[0]
    place = dict(_controllers(rig)).get(owner)
    return Macro(
        f"{prefix}_PARAMETER_{macro(parameter.name)}",
        str(parameter.place),
        about,
        f"parameter '{parameter.name}'",
        place,
    )


def _periods(rig: WiredRig, prefix: str) -> Iterator[Macro]:
    for (name, place), loop in zip(_controllers(rig), rig.tick_model.loops, strict=True):
        for key, value, about in (
            ("TICKS", loop.ticks, f"controller '{name}' runs when tick % TICKS == PHASE"),
            ("PHASE", loop.phase, ""),
        ):
            yield Macro(f"{prefix}_CONTROLLER_{macro(name)}_{key}", str(value), about, f"controller '{name}'", place)


def _of_joint(rig: WiredRig, name: str) -> SourceLocation | None:
    return rig.place(("joints", name))


def _of_signal(rig: WiredRig, name: str) -> SourceLocation | None:
    """Of the joint or the controller that it belongs to."""
    owner = name.partition("/")[0]
    return dict(_controllers(rig)).get(owner) or _of_joint(rig, owner)


def _paragraph(text: str) -> Iterable[str]:
    return (f"/* {_comment(line)} */" for line in textwrap.wrap(text, WIDTH))


def _comment(text: str) -> str:
    """Without the marks that begin or end a comment."""
    return re.sub(r"/(?=\*)|\*(?=/)", r"\g<0> ", text)
