"""FMUs without a solver (model exchange of FMI 2.0 and 3.0): their integration between the ends of a step, with time
events, state events and event iteration."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from ctypes import byref
from typing import Any

import numpy as np

from cosim.core.errors import RunError
from cosim.core.types import Array
from cosim.simulation.fmi.archive import FmuArchive
from cosim.simulation.fmi.instance import FmuOptions, Instance
from cosim.simulation.fmi.library import DISCARD, WARNING
from cosim.simulation.fmi.ports import InputPorts, horner
from cosim.simulation.fmi.solvers import DormandPrince, RadauSolver

TOLERANCE = 1e-8  # relative
MOST_EVENTS = 10_000  # in a step
MOST_STEPS = 100_000  # of the solver in a step
ORDER = 9  # of the inputs, which the solver follows inside a step
LEAST_REST = 1e-12  # relative to a step: what is shorter is not integrated


class ModelExchange(Instance):
    """An FMU solved here by Dormand and Prince's method, or Radau IIA of order 5 where the options say stiff."""

    order = ORDER
    variable = True

    def __init__(self, archive: FmuArchive, options: FmuOptions) -> None:
        super().__init__(archive, options)
        self._stiff = options.stiff
        experiment = archive.description.defaultExperiment
        self._relative = self._tolerance or float((experiment and experiment.tolerance) or TOLERANCE)
        self._completes = bool(archive.capabilities.needsCompletedIntegratorStep)

    # --- the FMU as a differential equation ---------------------------------------------------------

    def begin(self, t: float, inputs: Mapping[str, Array]) -> None:
        library = self.library
        assert library is not None
        given = [v for v in self._inputs if v.name in inputs]
        self.ports = InputPorts(library, [v for v in given if not v.discrete])
        self._events = InputPorts(library, [v for v in given if v.discrete])
        self._continuous = [v.name for v in given if not v.discrete]
        self._newest = {name: np.array(values[0]) for name, values in inputs.items()}
        self._inputs_now: Mapping[str, Array] = inputs
        self._t0, self._moving = t, False
        self._handle = library.handle
        self._n, self._nz = n, nz = self._sizes()
        self._states, self._slopes, self._indicators = ((ctypes.c_double * max(k, 1))() for k in (n, n, nz))
        self._x, self._dx, self._z = (
            np.ctypeslib.as_array(buffer)[:k]
            for buffer, k in ((self._states, n), (self._slopes, n), (self._indicators, nz))
        )
        self._set_time, self._set_states = library.function("SetTime"), library.function("SetContinuousStates")
        version2 = library.version == "2.0"
        self._get_slopes = library.function("GetDerivatives" if version2 else "GetContinuousStateDerivatives")
        self._get_indicators = library.function("GetEventIndicators")
        flag = ctypes.c_int if version2 else ctypes.c_bool
        self._enter, self._end = flag(), flag()
        self._next_event = library.update_discrete_states()
        library.call("EnterContinuousTimeMode")
        self._solver = self._new_solver()
        self._after_event()

    def _sizes(self) -> tuple[int, int]:
        """Numbers of states and of event indicators."""
        library, description = self.library, self._archive.description
        assert library is not None
        if library.version == "2.0":
            return description.numberOfContinuousStates, description.numberOfEventIndicators
        counts = ctypes.c_size_t(), ctypes.c_size_t()
        library.call("GetNumberOfContinuousStates", byref(counts[0]))
        library.call("GetNumberOfEventIndicators", byref(counts[1]))
        return counts[0].value, counts[1].value

    def _new_solver(self) -> DormandPrince | RadauSolver:
        library, n = self.library, len(self._x)
        assert library is not None
        nominal = np.ones(n)
        if n:
            values = (ctypes.c_double * n)()
            library.call("GetNominalsOfContinuousStates", values, n)
            nominal = np.abs(np.ctypeslib.as_array(values))
            nominal[nominal == 0.0] = 1.0
        kind = RadauSolver if self._stiff and n else DormandPrince
        return kind(self._derivatives, self._relative, self._relative * nominal)

    def _set(self, t: float, x: Array) -> None:
        """The FMU at a time and a state, with its inputs there."""
        handle, n = self._handle, self._n
        if (status := self._set_time(handle, t)) > WARNING:
            raise self._failure(self._set_time, status)
        if n:
            self._x[:] = x
            if (status := self._set_states(handle, self._states, n)) > WARNING:
                raise self._failure(self._set_states, status)
        if self._moving:
            self.ports.write(self._inputs_now, t - self._t0)

    def _derivatives(self, t: float, x: Array) -> Array:
        self._set(t, x)
        if self._n and (status := self._get_slopes(self._handle, self._slopes, self._n)) > WARNING:
            if status == DISCARD:  # outside of what the model can evaluate: the solver tries a shorter step
                return np.full(self._n, np.nan)
            raise self._failure(self._get_slopes, status)
        return self._dx

    def _signs(self) -> Array:
        """(nz,) whether the indicators of the FMU as it stands are positive."""
        if self._nz and (status := self._get_indicators(self._handle, self._indicators, self._nz)) > WARNING:
            raise self._failure(self._get_indicators, status)
        return self._z > 0.0

    def _failure(self, function: Any, status: int) -> RunError:
        assert self.library is not None
        return self.library.failure(function.__name__.removeprefix(self.library.prefix), status)

    # --- a step -------------------------------------------------------------------------------------

    def advance(self, t: float, h: float, inputs: Mapping[str, Array]) -> None:
        library, end, now = self.library, t + h, t
        assert library is not None
        self._begin_inputs(t, inputs)
        for _ in range(MOST_EVENTS):
            target = min(end, max(self._next_event, now))
            if target - now > LEAST_REST * h:
                now, happened = self._integrate(now, target)
            else:
                self._set(target, self._x)
                now, happened = target, False
            library.time = now
            if happened or self._next_event <= now:
                self._event()
            elif now >= end:
                self._newest |= {name: self._at_end(inputs[name], h) for name in self._continuous}
                return
        raise RunError(
            f"has more than {MOST_EVENTS} events between t = {t:.9g} s and {end:.9g} s; use a shorter step", self.place
        )

    def _begin_inputs(self, t: float, inputs: Mapping[str, Array]) -> None:
        """The inputs of a step; an event where they jump."""
        self._inputs_now, self._t0 = inputs, t
        self._moving = any(len(inputs[name]) > 1 for name in self._continuous)
        jumps = [name for name, value in self._newest.items() if not np.array_equal(inputs[name][0], value)]
        if not jumps:
            return
        self._newest |= {name: np.array(inputs[name][0]) for name in jumps}
        self._event(inputs)

    @staticmethod
    def _at_end(coefficients: Array, h: float) -> Array:
        return np.array(horner(coefficients, h))

    def _integrate(self, now: float, target: float) -> tuple[float, bool]:
        """To the target or the first event before it: (time reached, whether there is one)."""
        assert self.library is not None
        x, before = self._x.copy(), self._before
        for _ in range(MOST_STEPS):
            try:
                reached, after, inside = self._solver.step(now, x, target)
            except ArithmeticError:
                raise self._too_stiff(now) from None
            self.library.time = reached
            self._set(reached, after)
            if len(before) and (self._signs() != before).any():
                reached, after = self._crossing(now, reached, inside, before)
                return reached, True
            now, x = reached, after
            if self._completed():
                return now, True
            if now >= target:
                return now, False
        raise self._too_stiff(now)

    def _crossing(
        self, low: float, high: float, inside: Callable[[float], Array], before: Array
    ) -> tuple[float, Array]:
        """The first time, by bisection, at which an indicator has changed its sign; the FMU is left there."""
        while (middle := 0.5 * (low + high)) not in (low, high):
            self._set(middle, inside(middle))
            low, high = (low, middle) if (self._signs() != before).any() else (middle, high)
        state = inside(high)
        self._set(high, state)
        return high, state

    def _completed(self) -> bool:
        """Report the step of the solver; whether the FMU has an event there."""
        if not self._completes:
            return False
        library = self.library
        assert library is not None
        library.call("CompletedIntegratorStep", not self.repeats, byref(self._enter), byref(self._end))
        if self._end.value:
            raise library.stopped()
        return bool(self._enter.value)

    def _event(self, inputs: Mapping[str, Array] | None = None) -> None:
        """Event mode, with new inputs where they are given."""
        library = self.library
        assert library is not None
        library.call("EnterEventMode")
        if inputs is not None:
            self.ports.write(inputs)
            self._events.write(inputs)
        self._next_event = library.update_discrete_states()
        library.call("EnterContinuousTimeMode")
        self._after_event()

    def _after_event(self) -> None:
        """Where the integration starts again."""
        library = self.library
        assert library is not None
        if len(self._x):
            library.call("GetContinuousStates", self._states, len(self._x))
        self._before = self._signs()
        self._solver.reset()

    def _too_stiff(self, t: float) -> RunError:
        fix = "check its parameters" if self._stiff else "use stiff=True for a stiff model, or check its parameters"
        return RunError(f"cannot be integrated past t = {t:.9g} s with steps that are long enough; {fix}", self.place)

    # --- repeated steps -----------------------------------------------------------------------------

    def capture(self) -> object:
        return self._x.copy(), self._before, dict(self._newest), self._next_event, self._solver.step_size

    def recall(self, captured: object) -> None:
        assert isinstance(captured, tuple)
        self._x[:], self._before, newest, self._next_event, self._solver.step_size = captured
        self._newest = dict(newest)
        self._solver.reset()
