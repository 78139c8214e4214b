"""A federate beside the mechanism's: it answers what is asked of its parts until the run ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cosim.core.errors import CosimError, InputError, RunError, describe_exception
from cosim.simulation.coupling.block_part import BlockPart
from cosim.simulation.coupling.calling_master import HeldPart
from cosim.simulation.coupling.extrapolation import packed
from cosim.simulation.coupling.part import Part
from cosim.simulation.coupling.stepped_block import SteppedBlock
from cosim.simulation.federation.federate import Federate
from cosim.simulation.federation.messages import Message, PartCommand, arrays, digest_of
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
    """A part as the master would call it here."""

    def __init__(self, name: str, coupling: Coupling) -> None:
        found = coupling.parts[name]
        part: Part = SteppedBlock(replace(found, name=name)) if isinstance(found, BlockPart) else found.open()
        self._held = HeldPart(name, part, coupling.couplings)
        self._x = self._saved = np.zeros(self._held.size)  # its state, and the one that was saved

    def answer(self, request: Message) -> Message:
        """Raises what the part raises, and RunError for outputs that do not fit."""
        held, y, works = self._held, np.zeros(0), np.zeros(0)
        t, h, inputs = np.array(request["t"]), np.array(request["h"]), arrays(request["inputs"])
        for command in request["do"]:
            if command == PartCommand.START:
                self._x, y = held.at_start(request["t"], held.input_layout.pack(inputs))
            elif command == PartCommand.STEP:
                self._x, y, works = held.advance(t, h, self._x, packed(held.input_layout, inputs))
            elif command == PartCommand.SAVE:
                held.keep(self._x)
                self._saved = self._x
            else:
                self._x = self._saved
        return {"outputs": held.output_layout.unpack(y), "work": list(works)}

    def close(self) -> None:
        self._held.part.close()
