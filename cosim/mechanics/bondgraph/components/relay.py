"""A relay with two thresholds: it switches on above one of them and off below the other, and keeps its state between.

Its state s goes to 1 or 0 with the time constant τ, τ ṡ = target − s, where the target is 1 if the input is above the
threshold on − (on − off) s, else 0. The threshold moves away from the input as the relay switches, so that it latches,
as in a Schmitt trigger: an input that s drives itself does not stay at a threshold. It is half on, s = 1/2, τ ln 2
after the input passed the threshold. The instant is not located as an event: the rate of s jumps within a step, which
costs an error in the order of the step, so τ must be several steps long.

Port: `value`, a 0-junction whose effort is s.
"""

from __future__ import annotations

from typing import Literal

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, Law
from cosim.mechanics.bondgraph.components._follower import follower


@params
class Params:
    input: Law = param(doc="what is compared with the thresholds, an expression")
    on: float = param(unit="1", doc="above it the relay switches on; in SI")
    off: float = param(unit="1", doc="below it the relay switches off; in SI")
    time_constant: float = param(unit="s", above=0.0, doc="τ of switching, several steps of the integrator")
    initial: Literal["off", "on"] = param(default="off", doc="at the start")

    def __post_init__(self) -> None:
        if self.off > self.on:
            raise ValueError("'off' is above 'on'; for a relay that is on at low values, use 1 - value in its place")


def build(params: Params) -> BondGraph:
    def rate(s: Numeric, *signals: Numeric) -> Numeric:
        given = params.input.fn(*signals)
        threshold = params.on - (params.on - params.off) * s
        return (ops.where(given > threshold, 1.0, 0.0) - s) / params.time_constant

    return follower(rate, params.input.uses, 1.0 if params.initial == "on" else 0.0)
