"""An FMU as a part of a co-simulation, in this process or in one of its own: when it crashes or hangs there, the run
goes on to its end with one error.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from cosim.core.errors import CosimError, InputError, RunError
from cosim.core.types import Array, Signals
from cosim.simulation.coupling.part import Part, StartValue
from cosim.simulation.fmi.archive import FmuArchive, Interface
from cosim.simulation.fmi.co_simulation import CoSimulation2, CoSimulation3
from cosim.simulation.fmi.frames import StepFrames, pack, receive, send, send_numbers, unpack
from cosim.simulation.fmi.instance import FmuOptions, Instance, sequence_or_none
from cosim.simulation.fmi.model_exchange import ModelExchange

START_LIMIT = 60.0  # s, at least, of the process and of an initialisation
END_LIMIT = 2.0  # s
ERRORS: dict[str, Callable[..., CosimError]] = {"InputError": InputError, "RunError": RunError}


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
        self.start_values = part.start_values
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


class SavedRemotely:
    """The number of a state that the process of an FMU keeps until nobody holds this."""

    def __init__(self, number: int, released: list[int]) -> None:
        self.number, self._released = number, released

    def __del__(self) -> None:
        self._released.append(self.number)


class RemoteInstance:
    """An FMU in a process of its own, see `Instance`. limit: s, of the answer to a step."""

    def __init__(self, options: FmuOptions, limit: float) -> None:
        self.place = options.place
        self._limit, self._start_limit = limit, max(limit, START_LIMIT)
        self._released: list[int] = []
        self._steps = StepFrames({}, {}, 1)
        self._agreed: tuple[tuple[str, ...], int] | None = None  # names of the inputs of steps, and their rows
        # of the files that its process leaves when it crashes
        self._remove = weakref.finalize(self, shutil.rmtree, folder := mkdtemp(prefix="cosim_fmu_"), ignore_errors=True)
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "cosim.simulation.fmi.fmu_process",
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ
                | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "TMPDIR": folder},  # the same modules
                pass_fds=(theirs.fileno(),),
                process_group=0,  # Ctrl-C reaches the run only, which then ends this process
            )
        try:
            described = self._ask("while it is opened", self._start_limit, InputError, "open", options)
        except BaseException:
            self.close()
            raise
        self.inputs: Signals
        self.outputs: Signals
        self.feedthrough: frozenset[tuple[str, str]]
        self.start_values: dict[str, StartValue]
        self.inputs, self.outputs, self.feedthrough, *others = described
        self.order, self.repeats, self.variable, self.start_values = others

    @property
    def process_number(self) -> int:
        return self._process.pid

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        reply = self._ask("while it starts", self._start_limit, InputError, "start", t, pack(inputs))
        return unpack(reply, self.outputs)

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        when = f"in the step from t = {t:.9g} s"
        agreed = tuple(inputs), max(map(len, inputs.values()), default=1)
        if agreed != self._agreed:
            self._agree(*agreed, when)
        with self._answered(when, self._limit, RunError):
            self._set_timeout(self._limit)
            send_numbers(self._connection, self._steps.pack_inputs(t, h, inputs))
            answer = receive(self._connection, self._steps.results)
        return self._steps.unpack_outputs(answer if isinstance(answer, np.ndarray) else _result(answer))

    def _agree(self, names: tuple[str, ...], rows: int, when: str) -> None:
        """Agree with the process on the inputs of steps, polynomials (rows, ...); the FMU gets none but its own."""
        inputs = {name: self.inputs[name] for name in names if name in self.inputs}
        self._ask(when, self._limit, RunError, "agree", tuple(inputs), rows)
        self._steps, self._agreed = StepFrames(inputs, self.outputs, rows), (names, rows)

    def save(self) -> SavedRemotely:
        return SavedRemotely(self._ask("while it is saved", self._limit, RunError, "save"), self._released)

    def restore(self, saved: Any) -> None:
        self._ask("while it is restored", self._limit, RunError, "restore", saved.number)

    def close(self) -> None:
        """End the process and remove its files."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        try:
            self._process.wait(END_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._remove()

    def _ask(self, when: str, limit: float, error: Callable[..., CosimError], *message: object) -> Any:
        """The answer to a message. when: of the message, for errors; error: of a process that does not answer."""
        released = tuple(self._released)
        del self._released[: len(released)]
        with self._answered(when, limit, error):
            self._set_timeout(limit)
            send(self._connection, (*message, released))
            answer = receive(self._connection)
        return _result(answer)

    def _set_timeout(self, limit: float) -> None:
        if limit != self._connection.gettimeout():  # setting it takes a call of the system
            self._connection.settimeout(limit)

    @contextmanager
    def _answered(self, when: str, limit: float, error: Callable[..., CosimError]) -> Iterator[None]:
        """Raises the error of a process that does not answer; arguments as of `_ask`."""
        try:
            yield
        except TimeoutError:
            self._process.kill()
            what = f"gives no answer within {limit:g} s {when}, and was ended; check its inputs and parameters"
            fix = "or raise its limit (`couplings.time_limit` of a rig)"
            raise error(f"{what}, {fix}", self.place) from None
        except (EOFError, OSError):
            what = f"{self._end()} {when}"
            raise error(
                f"{what}; check its inputs and parameters, or report it to who exported it", self.place
            ) from None

    def _end(self) -> str:
        """How the process ended."""
        try:
            code = self._process.wait(END_LIMIT)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        if code >= 0:
            return f"ended its process with exit code {code}"
        return f"crashed ({signal.Signals(-code).name})"


def _result(answer: tuple[Any, ...]) -> Any:
    """What an answer has. Raises the error that it is."""
    kind, *reply = answer
    if kind in ERRORS:
        raise ERRORS[kind](*reply)
    return reply[0]
