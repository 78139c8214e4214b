"""The I²t limit of a drive: it gives its largest current for a short time, and then its continuous one.

    τ ẇ = i² / I_c² − w,  i_max² = I_c² + (I_p² − I_c²) · clip((1 − w) / β, 0, 1)

w is the heating relative to its value at the continuous current I_c. From cold the largest current I_p lasts
−τ ln(1 − (1 − β) I_c² / I_p²); then the limit falls to I_c within a band β of the heating.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, C, Law, Sf

BAND = 0.05  # β
HEATING = "heating.effort"  # the signal of w


@params
class Overload:
    continuous_current: float = param(unit="A", above=0.0, doc="I_c, amplitude of a phase")
    time_constant: float = param(unit="s", above=0.0, doc="τ")

    def limit(self, peak: float, heating: Numeric) -> Numeric:
        """The largest current [A] now; peak: of a cold drive."""
        continuous = self.continuous_current * self.continuous_current
        share = ops.clip((1.0 - heating) / BAND, 0.0, 1.0)
        return ops.sqrt(continuous + (peak * peak - continuous) * share)


def add_heating(graph: BondGraph, overload: Overload, square: Law) -> None:
    """The state w of these squares of the current [A²]."""

    def rate(heating: Numeric, *signals: Numeric) -> Numeric:
        share = square.fn(*signals) / (overload.continuous_current * overload.continuous_current)
        return (share - heating) / overload.time_constant

    graph.junction("heat", "0")
    graph.add("heat_rate", Sf("signal", Law(rate, (HEATING, *square.uses))))
    graph.add("heating", C("signal", 1.0))
    graph.chain("heat_rate", "heat", "heating")
