"""The federate of the mechanism: parts that run in other federates, as parts of the master, and the processes of those
that the run has started.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cosim.core.errors import RunError
from cosim.core.types import Array, Signals
from cosim.simulation.coupling.block_part import BlockPart
from cosim.simulation.coupling.couplings import Terminal
from cosim.simulation.coupling.part import Part
from cosim.simulation.federation.federate import SCHEME, Federate, free_port, load_helics
from cosim.simulation.federation.messages import ERRORS, Message, PartCommand, arrays, digest_of
from cosim.simulation.tick.coupled_plant import MECHANISM, Coupling, PartSource

START_LIMIT = 60.0  # s, at least: the other federates load the rig
END_LIMIT = 5.0  # s, for processes to end by themselves
BROKER = "-f {count} --localport={port} --local_interface=tcp://127.0.0.1 --loglevel=no_print"


@dataclass
class Federation:
    """Joins at the start of a run and ends with it. address: of a broker, None for one of its own on loopback, with a
    process for each other federate; command: of such a process, from the name of the federate and the address of the
    broker."""

    coupling: Coupling  # with all its parts
    mechanism: Signals  # its outputs
    step: float  # s, of the schedule
    address: str | None
    command: Callable[[str, str], Sequence[str]]
    _federate: Federate | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._digest = digest_of(self.coupling, self.step)
        self._limit = self.coupling.time_limit or START_LIMIT
        self._homes = sorted(set(self.coupling.federates.values()))
        self._processes: dict[str, FederateProcess] = {}
        self._broker: Any = None
        self._number, self._began = 0, False
        self._answers: dict[int, Message] = {}

    # --- requests to parts ---

    def request(self, part: str, do: Sequence[PartCommand], t: float, h: float, inputs: Mapping[str, Array]) -> int:
        """Send it; returns its number. Raises RunError: the federates do not meet, or the broker is lost."""
        federate = self._joined(t)
        self._number += 1
        head = {"number": self._number, "part": part, "rig": self._digest, "do": do}
        federate.send(self.coupling.federates[part], {**head, "t": t, "h": h, "inputs": inputs})
        return self._number

    def answer(self, number: int, part: str, t: float) -> Message:
        """To the request with this number. Raises RunError: the part fails, or gives no answer."""
        home = self.coupling.federates[part]
        watch = self._watch(self._limit, f"the federate '{home}' gives no answer for part '{part}'", t)
        while number not in self._answers:
            message = self._joined(t).receive(watch)
            self._answers[message["number"]] = message
        answer = self._answers.pop(number)
        if "error" in answer:
            raise ERRORS[answer["exit_code"]](answer["error"])
        return answer

    def publish(self, t: float, values: Mapping[Terminal, Array]) -> None:
        """The outputs of all parts that are valid at t [s]; this begins the simulated time, and lets it go on."""
        federate = self._joined(t)
        if self._began:
            federate.advance(t)
        for terminal, value in values.items():
            federate.publish(f"{terminal.part}/{terminal.signal}", value)
        if not self._began:
            federate.begin(self._watch(self._limit, "the simulated time does not begin", t))
            self._began = True

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

    # --- begin and end ---

    def _joined(self, t: float) -> Federate:
        """The federate, when all have met."""
        if self._federate is None:
            self._federate = self._join()
            self._federate.meet(self._watch(max(START_LIMIT, self._limit), "the other federates have not joined", t))
        return self._federate

    def _join(self) -> Federate:
        address = self.address
        if address is None:
            port = free_port()
            address = f"{SCHEME}127.0.0.1:{port}"
            helics = load_helics()
            try:
                self._broker = helics.helicsCreateBroker(
                    "zmq", "", BROKER.format(count=len(self._homes) + 1, port=port)
                )
            except helics.HelicsException as error:
                raise RunError(f"HELICS cannot start a broker: {error}; start the run again", address) from None
            for home in self._homes:
                self._processes[home] = FederateProcess(home, self.command(home, address))
        return Federate(MECHANISM, address, self._outputs())

    def _outputs(self) -> Signals:
        """What is published: all outputs of parts, and the mechanism's that couplings use."""
        used = {key: self.mechanism[key] for key in self.coupling.used_outputs}
        parts = {MECHANISM: used, **{name: part.outputs for name, part in self.coupling.parts.items()}}
        return {f"{name}/{key}": signal for name, outputs in parts.items() for key, signal in outputs.items()}

    def close(self) -> None:
        """End the run for all federates, and the processes of its own; idempotent."""
        federate, self._federate, met = self._federate, None, self._number > 0
        self._number, self._began = 0, False
        self._answers.clear()
        patience = END_LIMIT
        if federate is not None:
            patience = 0.0 if federate.stuck else END_LIMIT
            with suppress(RunError):
                for home in self._homes if met else ():
                    federate.send(home, {"do": [PartCommand.END]})
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
        self.work = np.zeros(len(self._ports))
        self._before: list[PartCommand] = []  # what the part does before the next step
        self._begun: int | None = None  # the request of a step that has begun

    @property
    def _ports(self) -> list[tuple[str, str]]:
        return self._federation.coupling.couplings.ports(self._name)

    def measure(self, ports: Sequence[tuple[str, str]]) -> None:
        """The other federate knows the ports from its rig, in the same order."""
        assert list(ports) == self._ports

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self._before.clear()
        return self._answer(self._federation.request(self._name, [PartCommand.START], t, 0.0, inputs), t)

    def begin_step(self, t: float, h: float, inputs: Mapping[str, Array]) -> None:
        do, self._before = [*self._before, PartCommand.STEP], []
        self._begun = self._federation.request(self._name, do, t, h, inputs)

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if self._begun is None:
            self.begin_step(t, h, inputs)
        assert self._begun is not None
        number, self._begun = self._begun, None
        return self._answer(number, t)

    def _answer(self, number: int, t: float) -> dict[str, Array]:
        answer = self._federation.answer(number, self._name, t)
        self.work = np.array(answer["work"], dtype=float)
        return arrays(answer["outputs"])

    def save(self) -> object:
        """Only the last saved state can be restored."""
        self._before.append(PartCommand.SAVE)
        return None

    def restore(self, saved: object) -> None:
        self._before.append(PartCommand.RESTORE)

    def close(self) -> None:
        self._federation.close()


class FederatedSource:
    """See `PartSource`. part: what the rig has for it here."""

    variable = False

    def __init__(self, name: str, part: BlockPart | PartSource, federation: Federation) -> None:
        self.name, self.federation = name, federation
        self.inputs, self.outputs, self.feedthrough = part.inputs, part.outputs, part.feedthrough
        self.order, self.repeats = part.order, part.repeats

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
    in_python = {**coupling.in_python, **reasons}
    return replace(coupling, parts=parts, in_python=in_python, publish=federation.publish)


class FederateProcess:
    """The process of a federate that a run has started; command: its words."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed by `end`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},  # the same modules
            process_group=0,  # Ctrl-C reaches the run only, which then ends this process
        )

    def check(self, t: float) -> None:
        """Raises RunError if it has ended."""
        code = self._process.poll()
        if code is not None:
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").splitlines()
            why = f": {lines[-1]}" if lines else ""
            what = f"the federate '{self.name}' has ended with exit code {code} at t = {t:.6g} s{why}"
            raise RunError(f"{what}; look for what ended it, and run again")

    def end(self, patience: float) -> None:
        """Wait for its end so long [s], then kill it."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
