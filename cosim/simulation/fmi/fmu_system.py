"""A system of FMUs: its parts, its wires and its connectors.

A part has the names of the elements around it and its own, joined with `/`: `arm/motor`. A dot in a name is an
underscore in it, because an end of a wire is split at its first dot. Paths with dots, `arm.motor.inertia`, name
variables as SSP does.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cosim.core.errors import SourceLocation
from cosim.simulation.coupling.couplings import Wire
from cosim.simulation.fmi.archive import Interface
from cosim.simulation.fmi.ssp_files import SspFolder


def part_name(elements: Sequence[str]) -> str:
    """Of a component; elements: names of the systems around it and its own."""
    return "/".join(name.replace(".", "_") for name in elements)


@dataclass(frozen=True)
class SystemPart:
    """An FMU of a system. name: after the systems around it, `arm/motor`; the others: for `FmuPart`. outputs:
    all outputs of the FMU, and other variables that connections or the caller read."""

    name: str
    path: Path
    parameters: Mapping[str, Any]
    outputs: tuple[str, ...]
    interface: Interface | None
    shown: str


@dataclass(frozen=True)
class SystemWire:
    """input = factor · output + offset, in SI. source: (part, output); target: (part, input); "" is the system itself.
    initial: see `Wire`; place: of its connection."""

    source: tuple[str, str]
    target: tuple[str, str]
    factor: float = 1.0
    offset: float = 0.0
    initial: float | None = None
    place: SourceLocation | None = field(default=None, compare=False)

    @property
    def wire(self) -> Wire:
        """Between parts, whose units are converted."""
        return Wire(".".join(self.source), ".".join(self.target), self.initial, self.factor, self.offset)


@dataclass(frozen=True)
class FmuSystem:
    """Parts and wires. inputs, outputs: connectors of the system by name: wires to the inputs that one feeds, and the
    wire from the output that one is; unconnected: connectors with no FMU behind them. `close` removes the files that
    were extracted; the parts need them when they open."""

    name: str
    parts: tuple[SystemPart, ...]
    wires: tuple[SystemWire, ...]
    inputs: Mapping[str, tuple[SystemWire, ...]]
    outputs: Mapping[str, SystemWire]
    unconnected: tuple[str, ...]
    _folder: SspFolder = field(repr=False)  # what it holds goes with it
    _remove: weakref.finalize | None = field(default=None, repr=False)

    def close(self) -> None:
        if self._remove is not None:
            self._remove()
