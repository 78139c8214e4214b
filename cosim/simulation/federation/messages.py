"""What the federate of the mechanism asks of a part, and what it answers.

A request is {number, part, rig, do, t, h, inputs}, an answer {number, outputs, work} or {number, error, exit_code}.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any

import numpy as np

from cosim.core.errors import InputError, RunError
from cosim.core.types import Array
from cosim.simulation.tick.coupled_plant import Coupling

ERRORS = {error.exit_code: error for error in (RunError, InputError)}
Message = dict[str, Any]


class PartCommand(StrEnum):
    """What a request has in its list `do`."""

    START = "start"  # at t, with inputs (...)
    STEP = "step"  # of length h from t, with the polynomials (rows, ...) of the inputs
    SAVE = "save"  # only the last saved state can be restored
    RESTORE = "restore"
    END = "end"  # of the run, for the whole federate


def arrays(values: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays that a message has as lists."""
    return {name: np.array(value, dtype=float) for name, value in values.items()}


def digest_of(coupling: Coupling, step: float) -> str:
    """Of the parts, their signals and couplings; equal in all federates that can run together. step [s]: of the
    schedule."""
    signals = [(name, dict(part.inputs), dict(part.outputs)) for name, part in coupling.parts.items()]
    text = repr((signals, coupling.federates, coupling.couplings, coupling.scheme, step))
    return sha256(text.encode()).hexdigest()[:16]
