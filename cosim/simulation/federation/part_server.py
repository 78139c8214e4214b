"""A federate beside the mechanism's: it answers what is asked of its parts until the run ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from cosim.core.errors import CosimError, InputError, RunError, describe_exception
from cosim.core.types import Array
from cosim.simulation.coupling.block_part import BlockPart
from cosim.simulation.coupling.energy import work_meter
from cosim.simulation.coupling.part import Part
from cosim.simulation.coupling.stepped_block import SteppedBlock
from cosim.simulation.federation.federate import Federate
from cosim.simulation.federation.messages import Message, PartCommand, arrays, digest_of, shaped
from cosim.simulation.tick.coupled_plant import MECHANISM, Coupling


def serve(coupling: Coupling, step: float, name: str, address: str, watch: Callable[[], None]) -> None:
    """Run the parts of this federate until the run ends. step [s]: of the schedule; address: of the broker; watch: see
    `Federate.meet`. Raises RunError for a lost broker, and the error of a part that failed, at the end."""
    federate = Federate(name, address)
    digest, failure = digest_of(coupling, step), None
    parts = {part: ServedPart(part, coupling) for part, home in coupling.federates.items() if home == name}
    try:
        federate.meet(watch)
        federate.begin(watch)
        while PartCommand.END not in (request := federate.receive(watch))["do"]:
            try:
                if request["rig"] != digest:
                    what = f"the federate '{name}' has other parts or couplings than the run"
                    raise InputError(f"{what}; load the same rig with the same overrides")
                answer = parts[request["part"]].answer(request)
            except Exception as error:
                failure = _as_error(error, request)
                answer = {"error": str(failure), "exit_code": failure.exit_code}
            federate.send(MECHANISM, {"number": request["number"], **answer})
            federate.advance(request["t"])
    finally:
        federate.close()
        for part in parts.values():
            part.close()
    if failure is not None:
        raise failure


def _as_error(error: Exception, request: Message) -> CosimError:
    if isinstance(error, CosimError):
        return error
    return RunError(f"part '{request['part']}' failed at t = {request['t']:.6g} s: {describe_exception(error)}")


class ServedPart:
    """A part, and its work: measured by itself, else by the trapezoidal rule as the master does it."""

    def __init__(self, name: str, coupling: Coupling) -> None:
        found, self.name = coupling.parts[name], name
        self._part: Part = SteppedBlock(replace(found, name=name)) if isinstance(found, BlockPart) else found.open()
        ports = coupling.couplings.ports(name)
        self._works, self._no_work = work_meter(self._part, ports), np.zeros(len(ports))
        self._outputs: Mapping[str, Array] = {}
        self._saved: tuple[object, Mapping[str, Array]] = None, {}

    def answer(self, request: Message) -> Message:
        """Raises what the part raises."""
        works = self._no_work
        t, h, inputs = request["t"], request["h"], arrays(request["inputs"])
        for command in request["do"]:
            if command == PartCommand.START:
                self._outputs = shaped(self.name, self._part.outputs, self._part.start(t, inputs))
            elif command == PartCommand.STEP:
                before = self._outputs
                self._outputs = shaped(self.name, self._part.outputs, self._part.step(t, h, inputs))
                works = self._works(h, inputs, before, self._outputs)
            elif command == PartCommand.SAVE:
                self._saved = self._part.save(), self._outputs
            else:
                saved, self._outputs = self._saved
                self._part.restore(saved)
        return {"outputs": self._outputs, "work": list(works)}

    def close(self) -> None:
        self._part.close()
