"""A federate beside that of the mechanism: it answers what is asked of its parts until the run ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from cosim.coupling.block_part import BlockPart
from cosim.coupling.energy import MeasuresWork, trapezoidal_work
from cosim.coupling.part import Part
from cosim.coupling.stepped_block import SteppedBlock
from cosim.errors import CosimError, InputError, RunError, describe_exception
from cosim.federation.federate import Federate
from cosim.federation.requests import REQUESTS, PartCommand, PartRequest, PartWords, digest_of
from cosim.tick.coupled_plant import Coupling
from cosim.types import Array

IDLE = 10_000  # steps without a request, after which the run has ended without a word


def serve(coupling: Coupling, step: float, name: str, address: str, watch: Callable[[], None]) -> None:
    """Run the parts of this federate until the run ends. step [s]: of the schedule; address: of the broker; watch: see
    `Federate.step`. Raises RunError for a lost broker, and the error of a part that failed, at the end."""
    numbers = {k: part for k, part in enumerate(coupling.parts) if coupling.federates.get(part) == name}
    federate = Federate(name, address, [f"{part}/answers" for part in numbers.values()], [REQUESTS])
    digest, last, idle = digest_of(coupling, step), 0, 0
    failure: CosimError | None = None
    parts = {k: ServedPart(part, coupling) for k, part in numbers.items()}
    try:
        federate.begin(watch)
        while True:
            federate.step(watch)
            values = federate.read(REQUESTS)
            idle += 1
            if not len(values) or values[0] == last:
                if idle > IDLE:
                    raise RunError("the run has ended without a word; see its messages", address)
                continue
            request = PartRequest.unpacked(values)
            last, idle = request.number, 0
            if request.command is PartCommand.END:
                break
            if request.part not in parts and request.digest == digest:
                continue  # of another federate
            part = parts.get(request.part, next(iter(parts.values())))
            try:
                if request.digest != digest:
                    what = f"the federate '{name}' has other parts or couplings than the run"
                    raise InputError(f"{what}; load the same rig with the same overrides")
                answer = part.answer(request)
            except Exception as error:
                failure = _as_error(error, part.name, request.t)
                federate.publish_error(str(failure))
                answer = np.array([request.number, 2.0 if isinstance(failure, InputError) else 1.0])
            federate.publish(f"{part.name}/answers", answer)
    finally:
        federate.close()
        for part in parts.values():
            part.close()
    if failure is not None:
        raise failure


def _as_error(error: Exception, part: str, t: float) -> CosimError:
    if isinstance(error, CosimError):
        return error
    return RunError(f"part '{part}' failed at t = {t:.6g} s: {describe_exception(error)}")


class ServedPart:
    """A part, and its work: measured by itself, else by the trapezoidal rule as the master does it."""

    def __init__(self, name: str, coupling: Coupling) -> None:
        found, self.name = coupling.parts[name], name
        self._part: Part = SteppedBlock(replace(found, name=name)) if isinstance(found, BlockPart) else found.open()
        self._words = PartWords.of(name, coupling)
        self._measures = isinstance(self._part, MeasuresWork)
        if self._measures:
            cast(MeasuresWork, self._part).measure(self._words.ports)
        self._outputs: Mapping[str, Array] = {}
        self._saved: tuple[object, Mapping[str, Array]] = None, {}

    def answer(self, request: PartRequest) -> Array:
        """What the part answers. Raises what it raises."""
        works: Sequence[float] | Array = np.zeros(len(self._words.ports))
        inputs = self._words.inputs_of(request.coefficients)
        if request.command is PartCommand.START:
            given = {name: values[0] for name, values in inputs.items()}
            self._outputs = self._copied(self._part.start(request.t, given))
        elif request.command is PartCommand.STEP:
            before = self._outputs
            self._outputs = self._copied(self._part.step(request.t, request.h, inputs))
            works = self._works(request.h, inputs, before)
        elif request.command is PartCommand.SAVE:
            self._saved = self._part.save(), self._outputs
        else:
            saved, self._outputs = self._saved
            self._part.restore(saved)
        return self._words.answer(request.number, works, self._outputs)

    def _works(self, h: float, inputs: Mapping[str, Array], before: Mapping[str, Array]) -> Sequence[float] | Array:
        if self._measures:
            return cast(MeasuresWork, self._part).work
        return [trapezoidal_work(port, h, inputs, before, self._outputs) for port in self._words.ports]

    def _copied(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """Of the shapes that it declares; a part may reuse its arrays. Raises RunError for other outputs."""
        found = {}
        for name, shape in self._words.outputs.items():
            if name not in outputs or np.shape(outputs[name]) != shape:
                raise RunError(f"part '{self.name}' gave no output '{name}' of shape {shape}")
            found[name] = np.array(outputs[name], dtype=float)
        return found

    def close(self) -> None:
        self._part.close()
