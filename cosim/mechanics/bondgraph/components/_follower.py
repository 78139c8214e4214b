"""A state without power that follows signals of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import BondGraph, C, Law, Sf


def follower(rate: Callable[..., Numeric], uses: Sequence[str], initial: float) -> BondGraph:
    """rate(value, *signals) in 1/s. Port: `value`, a 0-junction whose effort is the value."""
    graph = BondGraph(ports={"value": "value"})
    graph.junction("value", "0")
    graph.add("rate", Sf("signal", Law(rate, ("state.effort", *uses))))
    graph.add("state", C("signal", 1.0, initial=initial))
    graph.chain("rate", "value", "state")
    return graph
