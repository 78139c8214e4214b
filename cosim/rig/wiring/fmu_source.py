"""An FMU that a rig names: what it declares, and a new instance of it for each run."""

from __future__ import annotations

from functools import partial
from typing import cast

from cosim.rig.sections.parts import FmuSpec
from cosim.simulation.coupling.part import Part
from cosim.simulation.fmi import FmuPart


class FmuSource:
    """See `cosim.simulation.tick.coupled_plant.PartSource`. Raises InputError for an FMU that cannot run here, or whose
    variables are not those that the rig names."""

    def __init__(self, spec: FmuSpec, time_limit: float) -> None:
        self._open = partial(
            FmuPart,
            spec.file,
            spec.name,
            spec.parameters,
            spec.outputs,
            spec.interface,
            spec.tolerance,
            spec.stiff,
            spec.process,
            time_limit,
            spec.shown,
        )
        self._system = spec.system  # holds the files that the FMU is opened from
        part = self._open()
        part.close()
        self.inputs, self.outputs, self.feedthrough = part.inputs, part.outputs, part.feedthrough
        self.order, self.repeats, self.variable = part.order, part.repeats, part.variable

    def open(self) -> Part:
        """An instance that has not started."""
        return cast(Part, self._open())
