"""The elements of bond graphs in one table, and the values that they have.

| element | law | state |
|---|---|---|
| Se, Sf | e or f is given | |
| I | e = d(m f)/dt | f, or the momentum p of f = φ(p) |
| C | e = k q or φ(q), f = dq/dt | q |
| R | e = R f, φ(f), or f = φ(e) | |
| IC | e = ∂H/∂q or f = ∂H/∂p of each port, H(q, …, p, …) | q = ∫f dt or p = ∫e dt of each port |
| TF | e_in = m e_out, f_out = m f_in | |
| GY | e_in = k f_out, e_out = k f_in | |
| 0, 1 | common effort, Σ f = 0; common flow, Σ e = 0 | |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.domains import DOMAINS, GYRATIONS, RATIOS

Side = Literal["effort", "flow"]
Stored = Literal["displacement", "momentum"]
OUTPUTS: Mapping[Stored, Side] = {"displacement": "effort", "momentum": "flow"}  # what a storage computes
OWN = ("effort", "flow", "displacement", "momentum")


@dataclass(frozen=True)
class Law:
    """A value that depends on signals of the graph: fn(*signals), with `cosim.core.ops`, of numbers or symbols.

    uses: names of the signals: `t` [s], an input of the graph, `<element>.effort`, `<element>.flow`,
    `<element>.displacement`; of the element itself without its name. constants: named numbers in it; remade: the law
    with other values in their place.
    """

    fn: Callable[..., Numeric]
    uses: tuple[str, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict, compare=False)
    remade: Callable[[Mapping[str, Numeric]], Law] | None = field(default=None, compare=False)


Value = Numeric | Law


@dataclass(frozen=True)
class ElementKind:
    """The rules of a type of element: its ports, its value and its causality.

    ports: number of bonds; None: two or more of a junction, one per domain of a field. value: what the value of an
    element is, "" without one. law: whether it may be a `Law`. output: what an element of one port computes. required:
    it can compute nothing else. bound: of a value that is a number.
    """

    doc: str
    ports: int | None
    value: str = ""
    law: bool = False
    output: Side | None = None
    required: bool = False
    bound: Literal["", "above 0", "at least 0", "not 0"] = ""

    def allows(self, value: float) -> bool:
        """Whether a number is within the bound."""
        holds = {"": True, "above 0": value > 0.0, "at least 0": value >= 0.0, "not 0": value != 0.0}
        return holds[self.bound]


KINDS: dict[str, ElementKind] = {
    "Se": ElementKind("source of effort", 1, "effort", law=True, output="effort", required=True),
    "Sf": ElementKind("source of flow", 1, "flow", law=True, output="flow", required=True),
    "I": ElementKind("inertia", 1, "inertia", law=True, output="flow", bound="above 0"),
    "C": ElementKind("compliance", 1, "stiffness", law=True, output="effort", bound="above 0"),
    "R": ElementKind("resistance", 1, "resistance", law=True, output="effort", bound="at least 0"),
    "IC": ElementKind("storage field", None),
    "TF": ElementKind("transformer", 2, "ratio", law=True, bound="not 0"),
    "GY": ElementKind("gyrator", 2, "constant", law=True, bound="not 0"),
    "0": ElementKind("junction of common effort", None),
    "1": ElementKind("junction of common flow", None),
}


TRANSDUCERS: dict[str, Mapping[tuple[str, str], str]] = {"TF": RATIOS, "GY": GYRATIONS}


@dataclass(frozen=True)
class Element:
    """An element of a bond graph. kind: of `KINDS`; domains: of its ports, in and out, none of a junction; value: SI,
    or a `Law`.

    initial: of its state, or of the states of a field; energy: of an I or C whose value is a law, the stored energy [J]
    as a law of its momentum or displacement, without which it is integrated; of a field, as a law of its ports' states.
    stores: what each port of a field stores; ports: names under which bonds mean them, without which they are in the
    order of the bonds. gives: what an R by a law computes; inverse: its law, solved for the other side. part: of the
    losses of a drive to which an R belongs, see `power_account`.
    """

    kind: str
    domains: tuple[str, ...] = ()
    value: Value = 0.0
    initial: Numeric = 0.0
    energy: Law | None = None
    stores: tuple[Stored, ...] = ()
    ports: tuple[str, ...] = ()
    inverse: Law | None = None
    gives: Side | None = None
    part: str = ""

    @property
    def row(self) -> ElementKind:
        return KINDS[self.kind]

    @property
    def is_junction(self) -> bool:
        return self.kind in ("0", "1")

    @property
    def stored(self) -> tuple[Stored, ...]:
        """What each port of a storage stores; nothing of other elements."""
        one_port: Mapping[str, tuple[Stored, ...]] = {"I": ("momentum",), "C": ("displacement",)}
        return one_port.get(self.kind, self.stores)

    @property
    def unit(self) -> str | None:
        """Of its value; None for domains that a transformer or gyrator does not join."""
        if self.kind in TRANSDUCERS:
            first, last = self.domains
            return TRANSDUCERS[self.kind].get((first, last))
        return getattr(DOMAINS[self.domains[0]], self.row.value)

    @property
    def initial_unit(self) -> str:
        """Of the initial value of the state of an I or C."""
        domain = DOMAINS[self.domains[0]]
        if self.kind == "C":
            return domain.displacement
        return domain.momentum if isinstance(self.value, Law) else domain.flow

    @property
    def output(self) -> Side | None:
        """What it computes, where it is required or preferred."""
        return self.gives or self.row.output

    @property
    def required(self) -> bool:
        """Whether it can compute nothing else than `output`."""
        by_law = self.kind == "R" and isinstance(self.value, Law)
        return self.row.required or (by_law and self.inverse is None)

    @property
    def may_follow(self) -> bool:
        """Whether a storage can be in derivative causality."""
        return self.kind in ("I", "C") and not isinstance(self.value, Law)


def Se(domain: str, effort: Value) -> Element:
    """A source of effort; a law of `t` or of inputs makes it a controlled one."""
    return Element("Se", (domain,), effort)


def Sf(domain: str, flow: Value) -> Element:
    """A source of flow."""
    return Element("Sf", (domain,), flow)


def I(domain: str, inertia: Value, initial: Numeric = 0.0, energy: Law | None = None) -> Element:  # noqa: E743
    """An inertia m, e = m ḟ, with the flow `initial`; or a law of the `momentum`, with the momentum `initial`."""
    return Element("I", (domain,), inertia, initial, energy)


def C(domain: str, stiffness: Value, initial: Numeric = 0.0, energy: Law | None = None) -> Element:
    """A compliance e = k q with the displacement `initial`, or a law of the `displacement`."""
    return Element("C", (domain,), stiffness, initial, energy)


def R(domain: str, resistance: Value, inverse: Law | None = None, gives: Side | None = None) -> Element:
    """A resistance e = R f, or a law that `gives` the effort or the flow: by default, a law of the `effort` gives the
    flow, any other the effort. With the `inverse` of the law it can compute either."""
    if gives is None and isinstance(resistance, Law):
        gives = "flow" if "effort" in resistance.uses else "effort"
    return Element("R", (domain,), resistance, inverse=inverse, gives=gives)


def IC(
    ports: Sequence[tuple[str, Stored]],
    energy: Callable[..., Numeric],
    initial: Sequence[Numeric],
    names: Sequence[str] = (),
) -> Element:
    """A storage with several ports, a field, by its energy H [J] of their states: power into it is dH/dt, exactly.

    ports: (domain, what it stores), in the order of the bonds, or of `names`, and bonds name `element.port`; energy,
    initial: of the states in this order.
    """
    domains, stores = zip(*ports, strict=True)
    start = np.array(initial)
    return Element("IC", domains, initial=start, energy=Law(energy), stores=stores, ports=tuple(names))


def TF(domain: str, to: str, ratio: Value) -> Element:
    """A transformer: e_in = m e_out, f_out = m f_in; with a law it is modulated (MTF)."""
    return Element("TF", (domain, to), ratio)


def GY(domain: str, to: str, constant: Value) -> Element:
    """A gyrator: e_in = k f_out, e_out = k f_in; with a law it is modulated (MGY)."""
    return Element("GY", (domain, to), constant)
