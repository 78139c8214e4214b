"""A DC link: a capacitor between a supply and inverters, C u̇ = i_supply − i_chopper − Σ i_inverters, and a chopper that
burns what the supply does not take back.

The chopper is averaged over its switching: its share d of the time on grows with the voltage of the link,

    i_chopper = d u / R,  d = clip((u − U_on) / b, 0, 1)

One that switches with a hysteresis of b has about the same mean power, and a ripple of the voltage of about b, which
this one does not have. With `off_threshold` the chopper is that one: a `relay` switches it on above U_on and off below
U_off, d = s of its state.

Port: `bus`, a 0-junction.
"""

from __future__ import annotations

import math

from cosim.core import ops
from cosim.core.types import TripLimit, param, params
from cosim.mechanics.bondgraph import BondGraph, C, Law, R, power_account
from cosim.mechanics.bondgraph.components import relay
from cosim.mechanics.bondgraph.graph import DcSource

BUS = "bus.effort"
BAND = 10.0  # V


@params
class Chopper:
    """A brake chopper and its resistor."""

    threshold: float = param(unit="V", above=0.0, doc="U_on, from which it is on in part, or on")
    resistance: float = param(unit="ohm", above=0.0, doc="R of the brake resistor")
    band: float | None = param(
        unit="V", above=0.0, default=None, doc="b, above the threshold, from which it is always on; by default 10 V"
    )
    off_threshold: float | None = param(
        unit="V", above=0.0, default=None, doc="U_off, below which it is off again: it switches with hysteresis"
    )
    switching_time: float = param(
        unit="s", above=0.0, default=1e-4, doc="time constant of switching with hysteresis, several steps"
    )

    def __post_init__(self) -> None:
        if self.off_threshold is None:
            return
        if self.band is not None:
            raise ValueError("a chopper has a 'band' or an 'off_threshold', not both; take one out")
        if self.off_threshold >= self.threshold:
            raise ValueError("it switches off at a lower voltage than on; lower off_threshold below 'threshold'")

    @property
    def lowest(self) -> float:
        """The voltage [V] below which it is off."""
        return self.threshold if self.off_threshold is None else self.off_threshold

    @property
    def full(self) -> float:
        """The voltage [V] from which it is always on, and can do no more."""
        return self.threshold + (self._band if self.off_threshold is None else 0.0)

    @property
    def _band(self) -> float:
        return BAND if self.band is None else self.band

    def add(self, graph: BondGraph) -> None:
        """The resistor at the junction `bus`, and what switches it."""
        share = Law(lambda u: ops.clip((u - self.threshold) / self._band, 0.0, 1.0), (BUS,))
        if self.off_threshold is not None:
            by_voltage = Law(lambda u: u, (BUS,))
            thresholds = relay.Params(by_voltage, self.threshold, self.off_threshold, self.switching_time)
            graph.include("switch", relay.build(thresholds))
            share = Law(lambda s: s, ("switch.value.effort",))
        law = Law(lambda u, *known: share.fn(*known) * u / self.resistance, ("effort", *share.uses))
        graph.add("chopper", R("electrical", law))
        graph.bond("bus", "chopper")


@params
class Params:
    source: DcSource = param(
        doc="a type of component, `diode_bridge`, `active_front_end` or `battery`, and its parameters"
    )
    capacitance: float = param(unit="F", above=0.0, doc="C")
    voltage: float | None = param(
        unit="V", min=0.0, default=None, doc="of the capacitor at the start; by default as without load"
    )
    chopper: Chopper | None = param(default=None, doc="brake chopper; without it the voltage rises")
    largest_voltage: float | None = param(
        unit="V", above=0.0, default=None, doc="of the link, above which a run warns; by default 1.5 times the source's"
    )
    lowest_voltage: float | None = param(
        unit="V", above=0.0, default=None, doc="of the link, below which a run warns; by default half the source's"
    )
    trip: bool = param(default=False, doc="a run stops beyond `largest_voltage` and below `lowest_voltage`")

    def __post_init__(self) -> None:
        if not hasattr(self.source.params, "nominal"):
            raise ValueError(f"a '{self.source.type}' feeds no link; use a source of {DcSource.choices()}")
        if self.trip and self.largest_voltage is None and self.lowest_voltage is None:
            raise ValueError("trip has no bound; give largest_voltage or lowest_voltage")
        if self.largest_voltage is not None:
            if self.largest_voltage <= max(self.source.params.nominal, self.start):
                raise ValueError("the link is above its largest_voltage without load; raise it")
            if self.chopper is not None and self.chopper.threshold >= self.largest_voltage:
                raise ValueError("the chopper is off up to the largest_voltage; lower its threshold")
        if self.lowest_voltage is not None and self.lowest_voltage >= min(self.source.params.nominal, self.start):
            what = "the link is below its lowest_voltage without load"
            raise ValueError(f"{what}; lower it, or take it out of a link that is charged in the run")
        if self.chopper is not None and self.chopper.lowest <= self.source.params.nominal:
            raise ValueError(
                "the supply alone keeps the chopper on; raise its thresholds above the voltage of the source"
            )

    @property
    def trips(self) -> tuple[TripLimit, ...]:
        """Of the charge of its capacitor."""
        if not self.trip:
            return ()
        lowest = -math.inf if self.lowest_voltage is None else self.lowest_voltage
        largest = math.inf if self.largest_voltage is None else self.largest_voltage
        return (TripLimit("voltage", "V", "capacitor.displacement", 1.0 / self.capacitance, lowest, largest),)

    @property
    def start(self) -> float:
        """V"""
        return self.source.params.nominal if self.voltage is None else self.voltage


def build(params: Params) -> BondGraph:
    """Raises ValueError for one that trips, which nobody sees in a graph; `link_of` is the one of a supply."""
    if params.trip:
        raise ValueError("trip is of a link under 'supplies'; take it out of a graph")
    return link_of(params)


def link_of(params: Params) -> BondGraph:
    graph = BondGraph(ports={"bus": "bus"})
    graph.junction("bus", "0")
    graph.add("capacitor", C("electrical", 1.0 / params.capacitance, initial=params.capacitance * params.start))
    graph.bond("bus", "capacitor")
    graph.include("source", params.source.build())
    graph.bond("source.output", "bus")
    graph.signals["voltage"] = Law(lambda u: u, ("bus.effort",)), "V"
    if params.chopper is not None:
        params.chopper.add(graph)
    sources = [name for name, element in graph.elements.items() if element.kind in ("Se", "Sf")]
    if sources:
        power_account.add_supply(graph, power_account.supplied_by(sources))
    of = power_account.losses_by_part(graph, lambda name, _: "chopper" if name == "chopper" else "supply")
    power_account.add_losses(graph, of)
    return graph
