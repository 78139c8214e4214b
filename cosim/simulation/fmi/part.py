"""An FMU as a part of a co-simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cosim.core.types import Array
from cosim.simulation.coupling.part import Part
from cosim.simulation.fmi.archive import FmuArchive, Interface
from cosim.simulation.fmi.co_simulation import CoSimulation2, CoSimulation3
from cosim.simulation.fmi.instance import FmuOptions, Instance, sequence_or_none
from cosim.simulation.fmi.model_exchange import ModelExchange
from cosim.simulation.fmi.remote_instance import RemoteInstance


def open_instance(options: FmuOptions) -> Instance:
    """An FMU in this process."""
    archive = FmuArchive(options.path, options.interface, options.shown)
    try:
        kinds = {"2.0": CoSimulation2, "3.0": CoSimulation3}
        kind = ModelExchange if archive.interface == "model exchange" else kinds[archive.version]
        return kind(archive, options)
    except BaseException:
        archive.close()
        raise


class FmuPart:
    """An FMU (FMI 2.0 or 3.0) as a `cosim.simulation.coupling.part.Part`. All values are SI.

    path: of the FMU; name: of the instance, in messages; parameters: parameters and start values by name, numbers in SI
    or texts with a unit; outputs: names of its outputs and local variables, all of its outputs if None; interface:
    `co-simulation` or `model exchange`, the first it has if None; tolerance: relative, of its solver; stiff:
    model exchange is integrated with an implicit method; process: whether it runs in a process of its own, so that a
    crash or a hang of the FMU is an error of the part; limit: of a step then, s; shown: its file in messages.

    Raises InputError for an FMU that this machine cannot run, and for values that do not fit.
    """

    def __init__(
        self,
        path: str | Path,
        name: str = "",
        parameters: Mapping[str, object] | None = None,
        outputs: Sequence[str] | None = None,
        interface: Interface | None = None,
        tolerance: float | None = None,
        stiff: bool = False,
        process: bool = True,
        limit: float = 10.0,
        shown: str = "",
    ) -> None:
        path = Path(path)
        name, given, wanted = name or path.stem, dict(parameters or {}), sequence_or_none(outputs)
        self._options = FmuOptions(path, name, given, wanted, interface, tolerance, stiff, shown)
        self.place = self._options.place
        part = RemoteInstance(self._options, limit) if process else open_instance(self._options)
        self._part: Part = part
        self.bounded = process  # its steps end by themselves
        self.process_number = part.process_number if isinstance(part, RemoteInstance) else None
        self.inputs, self.outputs, self.feedthrough = part.inputs, part.outputs, part.feedthrough
        self.order, self.repeats, self.variable = part.order, part.repeats, part.variable
        # without a layer in between: a step takes some microseconds
        self.step, self.save, self.restore = part.step, part.save, part.restore

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """See `Part.start`. Inputs that are left out keep their start values."""
        return self._part.start(t, {name: np.asarray(value, float)[np.newaxis] for name, value in inputs.items()})

    def close(self) -> None:
        self._part.close()
