"""FMUs with a solver of their own: steps of FMI 2.0 and 3.0 co-simulation, with the event mode of FMI 3.0."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import byref

import numpy as np

from cosim.core.errors import RunError
from cosim.core.types import Array
from cosim.simulation.fmi.archive import FmuArchive
from cosim.simulation.fmi.instance import FmuOptions, Instance
from cosim.simulation.fmi.library import DISCARD, WARNING, FmuLibrary
from cosim.simulation.fmi.ports import InputPorts

MOST_EVENTS = 10_000  # in a step
TERMINATED = 3  # fmi2StatusKind
LEAST_REST = 1e-12  # relative to a step: a shorter rest of it is rounding


class CoSimulation2(Instance):
    """FMI 2.0. Where the FMU interpolates its inputs, it gets their first derivatives: FMI does not state how many it
    can use, and one is what every such FMU can."""

    def __init__(self, archive: FmuArchive, options: FmuOptions) -> None:
        super().__init__(archive, options)
        self.order = int(archive.capabilities.canInterpolateInputs)
        self.variable = bool(archive.capabilities.canHandleVariableCommunicationStepSize)

    def begin(self, t: float, inputs: Mapping[str, Array]) -> None:
        assert self.library is not None
        self._do_step = self.library.function("DoStep")
        self._final = int(not self.repeats)  # whether no state from before the step will be set
        followed = [v for v in self._inputs if v.is_real and not v.discrete and v.name in inputs]
        n = len(followed)
        self._slopes = [(v.name, v.conversion.factor) for v in followed]
        self._derivatives = (ctypes.c_double * n)()
        references, orders = (ctypes.c_uint * n)(*(v.reference for v in followed)), (ctypes.c_int * n)(*[1] * n)
        self._derivative_arguments = references, n, orders, self._derivatives

    def advance(self, t: float, h: float, inputs: Mapping[str, Array]) -> None:
        library = self.library
        assert library is not None
        self.ports.write(inputs)
        if self.order and self._slopes:
            for i, (name, factor) in enumerate(self._slopes):
                coefficients = inputs[name]
                self._derivatives[i] = coefficients[1] / factor if len(coefficients) > 1 else 0.0
            library.call("SetRealInputDerivatives", *self._derivative_arguments)
        status = self._do_step(library.handle, t, h, self._final)
        if status > WARNING:
            raise self._not_stepped(status)
        library.time = t + h

    def _not_stepped(self, status: int) -> RunError:
        """The reason that a step failed: an FMU that ends its simulation discards the step."""
        library, ended = self.library, ctypes.c_int()
        assert library is not None
        if status == DISCARD:
            library.function("GetBooleanStatus")(library.handle, TERMINATED, byref(ended))
        return library.stopped() if ended.value else library.failure("DoStep", status)


class CoSimulation3(Instance):
    """FMI 3.0. With an event mode, a step ends early at an event, the event is iterated, and the step goes on; discrete
    inputs are set in an event when they change."""

    order = 0

    def __init__(self, archive: FmuArchive, options: FmuOptions) -> None:
        super().__init__(archive, options)
        self.variable = bool(archive.capabilities.canHandleVariableCommunicationStepSize)
        self._event_mode = bool(archive.capabilities.hasEventMode)

    def instantiate(self, event_mode: bool = False) -> FmuLibrary:
        return super().instantiate(self._event_mode)

    def begin(self, t: float, inputs: Mapping[str, Array]) -> None:
        library = self.library
        assert library is not None
        self._do_step = library.function("DoStep")
        self._final = not self.repeats
        self._event, self._end, self._early = (ctypes.c_bool() for _ in range(3))
        self._reached = ctypes.c_double()
        self._results = tuple(map(byref, (self._event, self._end, self._early, self._reached)))
        if not self._event_mode:
            return
        given = [v for v in self._inputs if v.name in inputs]
        self._discrete = [v.name for v in given if v.discrete]
        self._events = InputPorts(library, [v for v in given if v.discrete])
        self.ports = InputPorts(library, [v for v in given if not v.discrete])
        self._newest = self._discrete_values(inputs)
        library.update_discrete_states()
        library.call("EnterStepMode")

    def advance(self, t: float, h: float, inputs: Mapping[str, Array]) -> None:
        library = self.library
        assert library is not None
        if self._event_mode and self._discrete:
            self._set_discrete(inputs)
        self.ports.write(inputs)
        end, now = t + h, t
        for _ in range(MOST_EVENTS):
            status = self._do_step(library.handle, now, end - now, self._final, *self._results)
            if status > WARNING:
                raise library.failure("DoStep", status)
            now = self._reached.value if self._early.value else end
            library.time = now
            if self._end.value:
                raise library.stopped()
            if self._event_mode and self._event.value:
                self._iterate()
            if end - now <= LEAST_REST * h:
                return
        raise RunError(
            f"has more than {MOST_EVENTS} events between t = {t:.9g} s and {end:.9g} s; use a shorter step", self.place
        )

    def capture(self) -> object:
        return self._newest if self._event_mode else None

    def recall(self, captured: object) -> None:
        if isinstance(captured, dict):
            self._newest = captured

    def _set_discrete(self, inputs: Mapping[str, Array]) -> None:
        """An event at the beginning of a step where discrete inputs have changed."""
        values = self._discrete_values(inputs)
        if all(np.array_equal(values[name], self._newest[name]) for name in values):
            return
        self._newest = values
        assert self.library is not None
        self.library.call("EnterEventMode")
        self._events.write(inputs)
        self._update()

    def _discrete_values(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return {name: np.array(inputs[name][0]) for name in self._discrete}

    def _iterate(self) -> None:
        assert self.library is not None
        self.library.call("EnterEventMode")
        self._update()

    def _update(self) -> None:
        assert self.library is not None
        self.library.update_discrete_states()
        self.library.call("EnterStepMode")
