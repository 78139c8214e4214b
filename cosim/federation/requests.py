"""What the federate of the mechanism asks of a part, and what it answers, as vectors of numbers.

A request is (number, part, command, digest, t, h, rows, coefficients …), an answer (number,
failed, works …, outputs …).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from cosim.coupling.couplings import Terminal
from cosim.errors import InputError, RunError
from cosim.tick.coupled_plant import Coupling
from cosim.types import Array

ERRORS = {1: RunError, 2: InputError}  # what `failed` stands for
REQUESTS = "mechanism/requests"  # what the federate of the mechanism publishes


class PartCommand(IntEnum):
    START = 1
    STEP = 2
    SAVE = 3
    RESTORE = 4
    END = 5  # of the run, for all federates


class PartRequest(NamedTuple):
    """digest: see `digest_of`; t, h [s]; coefficients (rows, n): of all inputs of the part side by side."""

    number: int
    part: int
    command: PartCommand
    digest: int
    t: float
    h: float
    coefficients: Array

    def packed(self) -> Array:
        head = [*self[:6], len(self.coefficients)]
        return np.concatenate([np.array(head, dtype=float), self.coefficients.reshape(-1)])

    @classmethod
    def unpacked(cls, values: Array) -> PartRequest:
        number, part, command, digest = (int(each) for each in values[:4])
        rows = int(values[6])
        coefficients = values[7:].reshape(rows, -1) if rows else np.zeros((0, 0))
        return cls(number, part, PartCommand(command), digest, float(values[4]), float(values[5]), coefficients)


@dataclass(frozen=True)
class PartWords:
    """The signals of a part in requests and answers: name -> shape of the inputs that something drives and of the
    outputs; ports: (input, output) of its bonds."""

    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    ports: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, name: str, coupling: Coupling) -> PartWords:
        part, sources = coupling.parts[name], coupling.couplings.sources
        inputs = {key: each.shape for key, each in part.inputs.items() if Terminal(name, key) in sources}
        outputs = {key: each.shape for key, each in part.outputs.items()}
        return cls(inputs, outputs, tuple(coupling.couplings.ports(name)))

    def coefficients(self, inputs: Mapping[str, Array], rows: int) -> Array:
        """(rows, n) of the inputs, each (rows, ...)."""
        columns = [np.reshape(inputs[name], (rows, -1)) for name in self.inputs]
        return np.concatenate([np.zeros((rows, 0)), *columns], axis=1)

    def inputs_of(self, coefficients: Array) -> dict[str, Array]:
        """Each (rows, ...)."""
        rows = len(coefficients)
        return {
            name: each.reshape(rows, *self.inputs[name]) for name, each in _split(coefficients, self.inputs).items()
        }

    def outputs_of(self, values: Array) -> dict[str, Array]:
        return {name: each.reshape(self.outputs[name]) for name, each in _split(values, self.outputs).items()}

    def answer(self, number: int, works: Sequence[float] | Array, outputs: Mapping[str, Array]) -> Array:
        flat = [np.reshape(np.asarray(outputs[name], dtype=float), -1) for name in self.outputs]
        return np.concatenate([[number, 0.0], works, *flat])


def _split(values: Array, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """The last axis in parts of these shapes."""
    ends = np.cumsum([int(np.prod(shape, dtype=int)) for shape in shapes.values()], dtype=int)
    return dict(zip(shapes, np.split(values, ends[:-1], axis=-1), strict=True)) if shapes else {}


def digest_of(coupling: Coupling, step: float) -> int:
    """Of the parts, their signals and couplings; equal in all federates that can run together. 48 bits: a float holds
    it. step [s]: of the schedule."""
    signals = [(name, dict(part.inputs), dict(part.outputs)) for name, part in coupling.parts.items()]
    text = repr((signals, coupling.federates, coupling.couplings, coupling.scheme, step))
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big")
