"""The play operator, hysteresis by a gap: its value w stays where it is until the input is half the width away from it,
and then moves with the input (Visintin, Differential Models of Hysteresis, 1994, chapter III).

τ ẇ = u − w − clip(u − w, −width / 2, width / 2) for the input u: behind a moving input w is late by τ |u̇|. A sum of
several plays of different widths with weights is a model of Prandtl and Ishlinskii.

Port: `value`, a 0-junction whose effort is w.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, Law
from cosim.mechanics.bondgraph.components._follower import follower


@params
class Params:
    input: Law = param(doc="what moves it, an expression")
    width: float = param(unit="1", min=0.0, doc="of the gap, from edge to edge; in SI, as the input")
    time_constant: float = param(unit="s", above=0.0, doc="τ, of following the input, several steps of the integrator")
    initial: float = param(unit="1", default=0.0, doc="value at the start")


def build(params: Params) -> BondGraph:
    half = 0.5 * params.width

    def rate(w: Numeric, *signals: Numeric) -> Numeric:
        away = params.input.fn(*signals) - w
        return (away - ops.clip(away, -half, half)) / params.time_constant

    return follower(rate, params.input.uses, params.initial)
