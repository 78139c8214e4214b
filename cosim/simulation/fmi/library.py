"""The functions of a loaded FMU: both versions of FMI behind one set of calls, errors with what the FMU logged."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Iterable, Sequence
from ctypes import byref
from functools import cache
from typing import Any

import numpy as np

from cosim.core.errors import InputError, RunError, SourceLocation, shortened
from cosim.core.types import Array
from cosim.simulation.fmi.archive import FmuArchive
from cosim.simulation.fmi.variables import FmuVariable

WARNING = 1  # statuses above it are failures
DISCARD, FATAL = 2, 4
MOST_ITERATIONS = 1000  # of an event
STATUS = ("OK", "a warning", "'discard'", "'error'", "'fatal'", "'pending'")
FIXES = {
    "'discard'": "use a shorter step",
    "'error'": "check its inputs and parameters, or use a shorter step",
    "'fatal'": "check its inputs and parameters, or report it to who exported it",
    "'pending'": "export it without asynchronous steps",
}
LOGGED: deque[str] = deque(maxlen=3)  # the newest messages of the FMUs of this process


def log_message(status: int, category: bytes | None, message: bytes | None) -> None:
    if status >= WARNING and message:
        LOGGED.append(" ".join(message.decode(errors="replace").split()))


@cache
def _functions() -> Any:
    """That FMUs of FMI 2 call, as long as the process lives: logger, memory."""
    from fmpy import calloc, fmi2, free

    logger = fmi2.fmi2CallbackLoggerTYPE(lambda _env, _name, *message: log_message(*message))
    return logger, fmi2.fmi2CallbackAllocateMemoryTYPE(calloc), fmi2.fmi2CallbackFreeMemoryTYPE(free)


def _callbacks() -> Any:
    """For an instance of FMI 2. fmpy formats the messages of all FMUs of a process for one logger, the last one: it is
    made the last one again, as other users of fmpy have their own."""
    from fmpy import fmi2
    from fmpy.logging import addLoggerProxy

    callbacks = fmi2.fmi2CallbackFunctions()
    callbacks.logger, callbacks.allocateMemory, callbacks.freeMemory = _functions()
    addLoggerProxy(byref(callbacks))
    return callbacks


def load_library(archive: FmuArchive, name: str) -> Any:
    """fmpy's object of an FMU: its library, loaded, without an instance. Raises InputError."""
    from fmpy import fmi2, fmi3

    kind = {
        ("2.0", "co-simulation"): fmi2.FMU2Slave,
        ("2.0", "model exchange"): fmi2.FMU2Model,
        ("3.0", "co-simulation"): fmi3.FMU3Slave,
        ("3.0", "model exchange"): fmi3.FMU3Model,
    }[archive.version, archive.interface]
    here = os.getcwd()
    try:
        return kind(
            guid=archive.description.guid or "",
            unzipDirectory=str(archive.folder),
            modelIdentifier=archive.identifier,
            instanceName=name,
        )
    except Exception as error:  # of the loader of the system, or of a function that is missing
        reason = shortened(" ".join(str(error).split()).replace(f"{archive.folder}/", ""), 300)
        raise InputError(
            f"its shared library does not load: {reason}; export the FMU again",
            SourceLocation(archive.shown, None, name),
        ) from None
    finally:
        os.chdir(here)  # fmpy changes to the folder of the library


class FmuLibrary:
    """An instance of an FMU and its functions; fmu: of `load_library`. Raises InputError for one that cannot be
    instantiated.

    The functions raise RunError with the name of the function, the time and what the FMU logged. Times are in s.
    """

    def __init__(self, fmu: Any, archive: FmuArchive, name: str, event_mode: bool = False) -> None:
        self.place = SourceLocation(archive.shown, None, name)
        self.version = archive.version
        self.time = 0.0  # for messages
        self.prefix = f"fmi{self.version[0]}"
        LOGGED.clear()
        self._fmu = fmu
        self._instantiate(archive, event_mode)
        self.handle = self._fmu.component
        self._states: list[ctypes.c_void_p] = []
        self._idle_states: list[ctypes.c_void_p] = []
        self.running = False  # between the initialisation and the end, without a failure
        self._dead = False

    def _instantiate(self, archive: FmuArchive, event_mode: bool) -> None:
        try:
            if self.version == "2.0":
                self._fmu.instantiate(callbacks=_callbacks())
            elif archive.interface == "model exchange":
                self._fmu.instantiate(logMessage=lambda _env, *message: log_message(*message))
            else:
                self._fmu.instantiate(
                    eventModeUsed=event_mode,
                    earlyReturnAllowed=event_mode,
                    logMessage=lambda _env, *message: log_message(*message),
                )
        except Exception:
            if self._fmu.component:
                raise
            raise InputError(f"cannot be instantiated: {_logged()}; {_remedy(archive)}", self.place) from None

    def function(self, name: str) -> Any:
        """A function of the FMU by its name without prefix; its result is a status."""
        return getattr(self._fmu.dll, self.prefix + name)

    def call(self, name: str, *arguments: Any) -> None:
        status = self.function(name)(self.handle, *arguments)
        if status > WARNING:
            raise self.failure(name, status)

    def failure(self, name: str, status: int) -> RunError:
        """The error of a call that returned a status above a warning."""
        self._dead = self._dead or status == FATAL
        self.running = False
        said = STATUS[status] if 0 <= status < len(STATUS) else f"status {status}"
        return RunError(
            f"{self.prefix}{name} failed at t = {self.time:.9g} s with {said}: {_logged()}; "
            f"{FIXES.get(said, 'export it again')}",
            self.place,
        )

    # --- initialisation -----------------------------------------------------------------------------

    def initialise(self, t: float, tolerance: float | None) -> None:
        """Enter the initialisation mode."""
        defined, value = tolerance is not None, tolerance or 0.0
        if self.version == "2.0":
            self.call("SetupExperiment", defined, value, t, False, 0.0)
            self.call("EnterInitializationMode")
        else:
            self.call("EnterInitializationMode", defined, value, t, False, 0.0)

    def set_values(self, values: Iterable[tuple[FmuVariable, Array | list[bytes]]]) -> None:
        for variable, value in values:
            if isinstance(value, list):
                texts = (ctypes.c_char_p * len(value))(*value)
                self._set("String", variable, texts, len(value))
            else:
                assert variable.storage is not None
                storage, kind = variable.storage
                self._set(storage, variable, (kind * len(value))(*value.tolist()), len(value))

    def _set(self, storage: str, variable: FmuVariable, values: Any, n: int) -> None:
        sizes = () if self.version == "2.0" else (n,)
        self.call(f"Set{storage}", (ctypes.c_uint * 1)(variable.reference), 1, values, *sizes)

    def update_discrete_states(self) -> float:
        """Event iteration; the time of the next time event, infinite without one."""
        for _ in range(MOST_ITERATIONS):
            if self.version == "2.0":
                again, terminate, *_, defined, when = self._new_discrete_states()
            else:
                again, terminate, *_, defined, when = self._update_discrete_states()
            if terminate:
                raise self.stopped()
            if not again:
                return when if defined else np.inf
        raise RunError(
            f"its events at t = {self.time:.9g} s do not converge in {MOST_ITERATIONS} iterations; check its inputs",
            self.place,
        )

    def stopped(self) -> RunError:
        what = f"ends its simulation at t = {self.time:.9g} s: {_logged()}"
        return RunError(f"{what}; end the run before, or check its inputs", self.place)

    def _new_discrete_states(self) -> Sequence[Any]:
        from fmpy.fmi2 import fmi2EventInfo

        info = fmi2EventInfo()
        self.call("NewDiscreteStates", byref(info))
        return [getattr(info, name) for name, *_ in fmi2EventInfo._fields_]

    def _update_discrete_states(self) -> Sequence[Any]:
        results = [ctypes.c_bool() for _ in range(5)] + [ctypes.c_double()]
        self.call("UpdateDiscreteStates", *map(byref, results))
        return [result.value for result in results]

    # --- states -------------------------------------------------------------------------------------

    def save(self) -> FmuState:
        """The state of the FMU. Memory of states that nobody holds is used again."""
        handle = self._idle_states.pop() if self._idle_states else ctypes.c_void_p()
        if handle.value is None:
            self._states.append(handle)
        self.call(f"GetFMU{self._state}", byref(handle))
        return FmuState(handle, self._idle_states)

    def restore(self, state: FmuState) -> None:
        self.call(f"SetFMU{self._state}", state.handle)

    @property
    def _state(self) -> str:
        return "state" if self.version == "2.0" else "State"

    def close(self) -> None:
        """Free the states and the instance."""
        if self.handle is None:
            return
        if self.running:
            self.function("Terminate")(self.handle)
        if not self._dead:
            for state in self._states:
                if state.value is not None:
                    self.function(f"FreeFMU{self._state}")(self.handle, byref(state))
            self.function("FreeInstance")(self.handle)
        self.handle = None


class FmuState:
    """A saved state of an FMU; its memory is free when nobody holds it."""

    def __init__(self, handle: ctypes.c_void_p, idle: list[ctypes.c_void_p]) -> None:
        self.handle, self._idle = handle, idle

    def __del__(self) -> None:
        self._idle.append(self.handle)


class VariableGroup:
    """Variables that are stored alike, in one array of values that the FMU reads and writes. `values`: (n,) numpy view
    of the array `buffer`, in the units of the FMU."""

    def __init__(self, library: FmuLibrary, variables: Sequence[FmuVariable]) -> None:
        assert variables[0].storage is not None
        self._library = library
        self.variables = variables
        self.name, kind = variables[0].storage
        n = sum(v.size for v in variables)
        self.buffer = buffer = (kind * max(n, 1))()
        self.values: Array = np.frombuffer(buffer, np.dtype(kind))[:n]
        references = (ctypes.c_uint * len(variables))(*(v.reference for v in variables))
        sizes = () if library.version == "2.0" else (n,)
        self._arguments = (library.handle, references, len(variables), buffer, *sizes)
        self._get, self._set = (library.function(f"{verb}{self.name}") for verb in ("Get", "Set"))
        ends = np.cumsum([v.size for v in variables])
        self.slices = [slice(int(end) - v.size, int(end)) for v, end in zip(variables, ends, strict=True)]

    def get(self) -> Array:
        status = self._get(*self._arguments)
        if status > WARNING:
            raise self._library.failure(f"Get{self.name}", status)
        return self.values

    def set(self) -> None:
        status = self._set(*self._arguments)
        if status > WARNING:
            raise self._library.failure(f"Set{self.name}", status)


def groups(library: FmuLibrary, variables: Iterable[FmuVariable]) -> list[VariableGroup]:
    """Variables by the way they are stored."""
    by_storage: dict[str, list[FmuVariable]] = {}
    for variable in variables:
        assert variable.storage is not None
        by_storage.setdefault(variable.storage[0], []).append(variable)
    return [VariableGroup(library, members) for members in by_storage.values()]


def _logged() -> str:
    return shortened("; ".join(LOGGED), 400) if LOGGED else "the FMU gives no reason"


def _remedy(archive: FmuArchive) -> str:
    """What an FMU that cannot be instantiated may need."""
    description = archive.description
    if archive.capabilities.needsExecutionTool:
        tool = description.generationTool or "the tool that exported it"
        return f"it needs {tool} to run: install that, or export the FMU with binaries that run alone"
    token = "guid" if archive.version == "2.0" else "instantiationToken"
    return f"modelDescription.xml ({token} '{description.guid}') and the binary must be of the same export"
