"""What is in an FMU, whatever it is a model of, and its data in C: the definitions that `unit.h` declares."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.apps.deploy.exportable import FileKind
from cosim.apps.deploy.fmu_export.model_description import UnitOutline
from cosim.apps.deploy.fmu_export.variables import UnitVariable

FMU = FileKind("an FMU", "cosim export fmu", "couple the file in the importer")


@dataclass(frozen=True)
class UnitContent:
    """All that an FMU is made of, for either version of FMI. kind: of its C source; code: LLVM IR of the functions, and
    data: C definitions, that the header of the kind declares, but for the token."""

    kind: Literal["rig", "part"]
    outline: UnitOutline
    variables: Sequence[UnitVariable]
    code: str
    data: str


def data_text(
    header: str,
    variables: Sequence[UnitVariable],
    initial: np.ndarray,
    moving: tuple[int, int],
    sizes: Mapping[str, int],
    *more: str,
) -> str:
    """C definitions of a unit but for its token. header: of its kind; initial: its memory; moving: the place, and how
    many go on by themselves; sizes: of the header, by their names without `unit_`; more: further lines."""
    own = {"memory_size": initial.size, "variable_count": len(variables)}
    own |= {"moving_place": moving[0], "moving_count": moving[1]}
    rows = (f"{{{v.kind}, {v.place}, {v.size}, {number(v.least)}, {number(v.greatest)}}}" for v in variables)
    lines = [
        f'#include "{header}"',
        "#include <math.h>",
        *(f"const size_t unit_{name} = {value};" for name, value in (own | dict(sizes)).items()),
        array("double unit_initial", map(number, initial.tolist())),
        array("Variable unit_variables", rows),
        *more,
    ]
    return "\n".join(lines) + "\n"


def array(declaration: str, elements: Iterable[str]) -> str:
    found = ", ".join(elements)
    return f"const {declaration}[] = {{{found or 0}}};"


def number(value: float) -> str:
    """A C literal, exact to the bit."""
    if math.isnan(value):
        return "NAN"
    return value.hex() if math.isfinite(value) else "INFINITY" if value > 0.0 else "-INFINITY"


def text(text: str) -> str:
    """A C string literal of UTF-8 bytes."""
    plain = json.dumps(text, ensure_ascii=False)  # ASCII is escaped as in C
    return "".join(c if c.isascii() else "".join(f"\\{byte:03o}" for byte in c.encode()) for c in plain)
