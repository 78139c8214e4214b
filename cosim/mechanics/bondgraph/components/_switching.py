"""The ripple of a switched inverter, beside its averaged voltages.

A leg is at the upper rail while a symmetric triangular wave of the frequency f is below its duty d: in the middle of
the period T = 1 / f. With the place τ in the period, −1/2 … 1/2, the integral of what it gives beyond its
mean d U_dc has the closed form

    U_dc T g(τ, d),   g = sign(τ) min((1 − d) |τ|, d (1/2 − |τ|)).

Divided by the inductance it is the ripple r of the current, d (1 − d) U_dc T / L from peak to peak (Mohan, Undeland and
Robbins, Power Electronics, 1995), and 0 at τ = 0 and ± 1/2: there drives sample the mean. The current is i = i' + r,
with L di'/dt = ū − R i − e: these are the equations of the switched inverter, and they have no jump to be located.
As a bond graph r is a source of flow beside the winding, whose power −L r di'/dt is what the supply gives and takes by
switching; it is exact while the duty is constant from one zero of r to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import BondGraph, Law, Sf
from cosim.mechanics.bondgraph.components._current_control import Inverter
from cosim.mechanics.bondgraph.components._phases import in_axes, in_phases
from cosim.mechanics.bondgraph.graph import Bond

RIPPLE = "_ripple"  # ends the name of its source
STEPS = 16  # substeps of a period, at least: fewer would not see the ripple


def of_leg(inverter: Inverter, t: Numeric, voltage: Numeric) -> Numeric:
    """∫ (u − ū) dt [V·s] of a leg with the mean voltage ū to the middle of the supply, at a time [s]."""
    turns = inverter.switching_frequency * t
    place = turns - ops.floor(turns) - 0.5
    duty = ops.clip(0.5 + voltage / inverter.supply_voltage, 0.0, 1.0)
    size = ops.minimum((1.0 - duty) * ops.abs(place), duty * (0.5 - ops.abs(place)))
    return inverter.supply_voltage / inverter.switching_frequency * ops.where(place < 0.0, -size, size)


def of_full_bridge(inverter: Inverter, t: Numeric, voltage: Numeric) -> Numeric:
    """… of two legs at ± half the mean voltage: unipolar, on twice per period."""
    return of_leg(inverter, t, voltage / 2.0) - of_leg(inverter, t, -voltage / 2.0)


def of_three_legs(inverter: Inverter, t: Numeric, voltages: Sequence[Numeric]) -> list[Numeric]:
    """… of each leg, whose duties lie symmetric about 1/2 as with space vectors."""
    a, b, c = voltages
    middle = 0.5 * (ops.maximum(ops.maximum(a, b), c) + ops.minimum(ops.minimum(a, b), c))
    return [of_leg(inverter, t, voltage - middle) for voltage in voltages]


def add_ripple(
    graph: BondGraph, mesh: str, winding: str, inductance: float, ripple: Callable[..., Numeric], uses: Sequence[str]
) -> None:
    """A source of the ripple beside a winding that is bonded to a mesh; ripple: ∫ (u − ū) dt [V·s] by these signals.
    The flow of the mesh is then the current, the flow of the winding its mean."""
    graph.bonds.remove(Bond(mesh, winding))
    graph.junction(f"{winding}_node", "0")
    source = graph.add(
        f"{winding}{RIPPLE}", Sf("electrical", Law(lambda *known: ripple(*known) / inductance, tuple(uses)))
    )
    graph.chain(mesh, f"{winding}_node", winding)
    graph.bond(f"{winding}_node", source)


def weaken_ripple(graph: BondGraph, winding: str, inductance: float) -> None:
    """Make the ripple beside a winding, if there is one, as small as a further inductance [H] in series makes it."""
    source, own = f"{winding}{RIPPLE}", graph.elements[winding].value
    if source not in graph.elements:
        return
    ripple = graph.elements[source].value
    assert isinstance(ripple, Law) and not isinstance(own, Law)
    share = own / (own + inductance)
    smaller = Law(lambda *known: share * ripple.fn(*known), ripple.uses)
    graph.elements[source] = replace(graph.elements[source], value=smaller)


def ripples_of(graph: BondGraph) -> list[str]:
    """The sources of its ripple."""
    return [name for name, element in graph.elements.items() if element.kind == "Sf" and name.endswith(RIPPLE)]


def add_ripples(graph: BondGraph, inverter: Inverter, inductance: float, voltages: Sequence[str]) -> None:
    """Of three legs, beside the windings of the axes α and β; voltages: signals of their means."""

    def ripples(t: Numeric, alpha: Numeric, beta: Numeric) -> tuple[Numeric, Numeric]:
        return in_axes(of_three_legs(inverter, t, in_phases(alpha, beta)))

    for k, axis in enumerate(("alpha", "beta")):
        mesh, winding = f"mesh_{axis}", f"winding_{axis}"
        add_ripple(graph, mesh, winding, inductance, lambda *x, k=k: ripples(*x)[k], ("t", *voltages))
