"""What turns a requested effort into an effort on a joint; one file per kind.

A module has `Params` and `load(params) -> Actuator`. The rig names it: `actuator: {type: <module>, …}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from cosim.types import Signal, Signals, State

INPUTS: Signals = {
    "request": Signal((), "joint effort"),
    "position": Signal((), "joint position"),
    "velocity": Signal((), "joint velocity"),
}
# every actuator's outputs: effort on the joint, power taken from the source, power lost, energy held inside
OUTPUTS: Signals = {
    "effort": Signal((), "joint effort"),
    "power": Signal((), "W"),
    "loss": Signal((), "W"),
    "stored": Signal((), "J"),
}


class Actuator(Protocol):
    """A continuous block between a request and a joint; all signals are of one joint, shape ()."""

    inputs: Signals
    outputs: Signals  # OUTPUTS and what else is worth recording
    params: Any
    reflected_inertia: float  # rigidly coupled to the joint; the mechanism carries it [kg m² or kg]
    rates: Mapping[str, str]  # states that are positions -> the states that are their rates

    def initial(self, position: float, velocity: float) -> State:
        """At rest electrically, with the joint as given."""
        ...

    def flow(self, t: Any, p: Any, x: State, u: Mapping[str, Any]) -> tuple[State, dict[str, Any]]:
        """(dx/dt, outputs)."""
        ...
