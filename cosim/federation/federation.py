"""The federate of the mechanism: parts that run in other federates, as parts of the master."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cosim.coupling.block_part import BlockPart
from cosim.coupling.part import Part
from cosim.coupling.stepped_block import SteppedBlock
from cosim.errors import RunError
from cosim.federation.federate import SCHEME, Federate, free_port, load_helics
from cosim.federation.federate_process import FederateProcess
from cosim.federation.requests import ERRORS, REQUESTS, PartCommand, PartRequest, PartWords, digest_of
from cosim.tick.coupled_plant import MECHANISM, Coupling, PartSource
from cosim.types import Array

START_LIMIT = 60.0  # s, at least: the other federates load the rig
NOTHING = np.zeros((0, 0))
END_LIMIT = 5.0  # s, for processes to end by themselves
BROKER = "-f {count} --localport={port} --local_interface=tcp://127.0.0.1 --loglevel=no_print"


@dataclass
class Federation:
    """Joins at the start of a run and ends with it. address: of a broker, None for one of its own on loopback, with a
    process for each other federate; command: of such a process, from the name of the federate and the address of the
    broker."""

    coupling: Coupling  # with all its parts
    step: float  # s, of the schedule
    address: str | None
    command: Callable[[str, str], Sequence[str]]
    _federate: Federate | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._names = list(self.coupling.parts)
        self._digest = digest_of(self.coupling, self.step)
        self._limit = self.coupling.time_limit or START_LIMIT
        self._processes: dict[str, FederateProcess] = {}
        self._broker: Any = None
        self._number = 0

    def ask(self, part: str, command: PartCommand, t: float, h: float, coefficients: Array) -> Array:
        """The works [J] and outputs of the part, flat. Raises RunError: the part fails, or gives no answer."""
        if self._federate is None:
            self._federate = self._join()
            self._federate.begin(self._watch(max(START_LIMIT, self._limit), "the other federates have not joined", t))
        federate, home = self._federate, self.coupling.federates[part]
        self._number += 1
        request = PartRequest(self._number, self._names.index(part), command, self._digest, t, h, coefficients)
        federate.publish(REQUESTS, request.packed())
        watch = self._watch(self._limit, f"the federate '{home}' gives no answer for part '{part}'", t)
        while True:
            federate.step(watch)
            answer = federate.read(f"{part}/answers")
            if len(answer) and answer[0] == self._number:
                break
        if answer[1]:
            raise ERRORS[int(answer[1])](federate.error_of(home))
        return answer[2:]

    def _watch(self, limit: float, what: str, t: float) -> Callable[[], None]:
        """What raises RunError after `limit` [s], and when a process has ended."""
        end = time.monotonic() + limit

        def watch() -> None:
            for process in self._processes.values():
                process.check(t)
            if time.monotonic() > end:
                fix = "it or the broker has ended or hangs, or needs a longer couplings.time_limit"
                raise RunError(f"{what} within {limit:g} s at t = {t:.6g} s; {fix}")

        return watch

    def _join(self) -> Federate:
        homes = sorted(set(self.coupling.federates.values()))
        address = self.address
        if address is None:
            port = free_port()
            address = f"{SCHEME}127.0.0.1:{port}"
            helics = load_helics()
            try:
                self._broker = helics.helicsCreateBroker("zmq", "", BROKER.format(count=len(homes) + 1, port=port))
            except helics.HelicsException as error:
                raise RunError(f"HELICS cannot start a broker: {error}; start the run again", address) from None
            for home in homes:
                self._processes[home] = FederateProcess(home, self.command(home, address))
        answers = [f"{part}/answers" for part in self.coupling.federates]
        return Federate(MECHANISM, address, [REQUESTS], answers, homes)

    def close(self) -> None:
        """End the run for all federates, and the processes of its own; idempotent."""
        federate, self._federate = self._federate, None
        patience = END_LIMIT
        if federate is not None:
            patience = 0.0 if federate.stuck else END_LIMIT
            with suppress(RunError):
                federate.publish(
                    REQUESTS, PartRequest(self._number + 1, -1, PartCommand.END, 0, 0.0, 0.0, NOTHING).packed()
                )
            federate.close()
        for process in self._processes.values():
            process.end(patience)
        self._processes.clear()
        if self._broker is not None:
            load_helics().helicsBrokerDisconnect(self._broker)
            self._broker = None


class FederatedPart:
    """A part in another federate, which measures its work there."""

    bounded = True  # its steps end within the limit by themselves
    variable = False

    def __init__(self, source: FederatedSource) -> None:
        self._name, self._federation = source.name, source.federation
        self.inputs, self.outputs, self.feedthrough = source.inputs, source.outputs, source.feedthrough
        self.order, self.repeats = source.order, source.repeats
        self._words = PartWords.of(source.name, source.federation.coupling)
        self.work = np.zeros(len(self._words.ports))

    def measure(self, ports: Sequence[tuple[str, str]]) -> None:
        """The other federate knows the ports from its rig, in the same order."""
        assert tuple(ports) == self._words.ports

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return self._ask(PartCommand.START, t, 0.0, self._words.coefficients(inputs, 1))

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        rows = max((len(each) for each in inputs.values()), default=1)
        return self._ask(PartCommand.STEP, t, h, self._words.coefficients(inputs, rows))

    def save(self) -> object:
        """Only the last saved state can be restored."""
        return self._ask(PartCommand.SAVE, 0.0, 0.0, NOTHING)

    def restore(self, saved: object) -> None:
        self._ask(PartCommand.RESTORE, 0.0, 0.0, NOTHING)

    def _ask(self, command: PartCommand, t: float, h: float, coefficients: Array) -> dict[str, Array]:
        answer = self._federation.ask(self._name, command, t, h, coefficients)
        self.work = answer[: len(self.work)]
        return self._words.outputs_of(answer[len(self.work) :])

    def close(self) -> None:
        self._federation.close()


class FederatedSource:
    """See `PartSource`. part: what the rig has for it here."""

    variable = False

    def __init__(self, name: str, part: BlockPart | PartSource, federation: Federation) -> None:
        self.name, self.federation = name, federation
        self.inputs, self.outputs, self.feedthrough = part.inputs, part.outputs, part.feedthrough
        stepped = SteppedBlock if isinstance(part, BlockPart) else part
        self.order, self.repeats = stepped.order, stepped.repeats

    def open(self) -> Part:
        return FederatedPart(self)


def federated(federation: Federation) -> Coupling:
    """The coupling with the parts of other federates in these."""
    coupling = federation.coupling
    homes = coupling.federates
    parts = {
        name: FederatedSource(name, part, federation) if name in homes else part
        for name, part in coupling.parts.items()
    }
    reasons = {name: f"in the federate '{home}'" for name, home in homes.items()}
    return replace(coupling, parts=parts, in_python={**coupling.in_python, **reasons})
