"""What the interfaces of an FMU share: its description as a part, the start, saved states, the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cosim.core.errors import InputError, RunError, SourceLocation, did_you_mean, shortened
from cosim.core.types import Array, Signals
from cosim.simulation.fmi.archive import FmuArchive, Interface
from cosim.simulation.fmi.library import LOGGED, FmuLibrary, FmuState, load_library
from cosim.simulation.fmi.ports import InputPorts, OutputPorts
from cosim.simulation.fmi.variables import PARAMETERS, FmuVariables, signals


@dataclass(frozen=True)
class FmuOptions:
    """How an FMU is opened; see `FmuPart`."""

    path: Path
    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    outputs: tuple[str, ...] | None = None
    interface: Interface | None = None
    tolerance: float | None = None
    stiff: bool = False
    shown: str = ""

    @property
    def place(self) -> SourceLocation:
        return SourceLocation(self.shown or str(self.path), None, self.name)


class Instance:
    """An FMU in this process; `begin`, `advance` and `capture` depend on its interface."""

    order: int
    variable: bool

    def __init__(self, archive: FmuArchive, options: FmuOptions) -> None:
        self._archive, self._name, self._tolerance = archive, options.name, options.tolerance
        variables = FmuVariables(archive.description, archive.version, self.place, options.parameters)
        self._variables = variables
        self._inputs, self._outputs = variables.inputs, variables.outputs(options.outputs)
        values = variables.values(options.parameters)
        self._structural = [(v, x) for v, x in values if v.declared.causality == PARAMETERS[1]]
        self._values = [(v, x) for v, x in values if v.declared.causality != PARAMETERS[1]]
        self.start_values = variables.start_values(values)
        self.inputs: Signals = signals(self._inputs)
        self.outputs: Signals = signals(self._outputs)
        self.feedthrough = variables.feedthrough(self._inputs, self._outputs)
        self.repeats = bool(archive.capabilities.canGetAndSetFMUstate)
        self.library: FmuLibrary | None = None
        self._fmu: Any = None  # of fmpy, once it is loaded

    @property
    def place(self) -> SourceLocation:
        return SourceLocation(self._archive.shown, None, self._name)

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """See `Part.start`; inputs that are not given keep their start values."""
        for name in inputs:
            if name not in self.inputs:
                raise InputError(f"there is no input '{shortened(name)}'{did_you_mean(name, self.inputs)}", self.place)
        self._free()
        self.library = library = self.instantiate()
        given = [v for v in self._inputs if v.name in inputs]
        try:
            library.time = t
            if self._structural:
                library.call("EnterConfigurationMode")
                library.set_values(self._structural)
                library.call("ExitConfigurationMode")
            library.set_values(self._values)
            library.initialise(t, self._tolerance)
            self.ports = InputPorts(library, given)
            self.results = OutputPorts(library, self._outputs)
            self.ports.write(inputs)
            library.call("ExitInitializationMode")
            library.running = True
            self.begin(t, inputs)
            return self.results.read()
        except RunError as error:
            raise InputError(f"does not start: {error.what}", error.place) from None

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """See `Part.step`."""
        assert self.library is not None
        self.library.time = t
        LOGGED.clear()  # an error has what was logged in its step
        self.advance(t, h, inputs)
        return self.results.read()

    def instantiate(self, event_mode: bool = False) -> FmuLibrary:
        """A new instance; the library is loaded once."""
        if self._fmu is None:
            self._fmu = load_library(self._archive, self._name)
        return FmuLibrary(self._fmu, self._archive, self._name, event_mode)

    def begin(self, t: float, inputs: Mapping[str, Array]) -> None:
        """What follows the initialisation mode."""

    def advance(self, t: float, h: float, inputs: Mapping[str, Array]) -> None:
        """From t to t + h."""
        raise NotImplementedError

    def capture(self) -> object:
        """What the interface knows besides the state of the FMU."""
        return None

    def recall(self, captured: object) -> None:
        """Return to what `capture` returned."""

    def save(self) -> tuple[FmuState, object]:
        assert self.library is not None
        return self.library.save(), self.capture()

    def restore(self, saved: Any) -> None:
        assert self.library is not None
        state, captured = saved
        self.library.restore(state)
        self.recall(captured)

    def close(self) -> None:
        self._free()
        if self._fmu is not None:
            self._fmu.freeLibrary()
            self._fmu = None
        self._archive.close()

    def _free(self) -> None:
        if self.library is not None:
            self.library.close()
            self.library = None


def sequence_or_none(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)
