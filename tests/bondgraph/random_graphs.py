"""Random bond graphs on one to three joints, and their solution by another way: one linear system of all bonds.

The unknowns y are the efforts and flows of all bonds, the momentum or displacement of each storage, velocity and
position of each joint, and two states of an oscillator for each source. What the elements and junctions say are the
rows of E ẏ = A y, written from the list of elements. No causality is assigned: the subspace in which solutions lie is
found by numbers (the Wong sequence of the pencil, Berger, Ilchmann and Trenn 2012), and y follows there from a matrix
exponential.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import expm, null_space, orth

MOVING = ("rotational", "translational")
# kinds of transducers between domains; those of unlike mechanical domains have a TF alone
BETWEEN = {
    **{(name, name): ("TF",) for name in MOVING},
    ("electrical", "electrical"): ("TF", "GY"),
    **{(name, "electrical"): ("GY",) for name in MOVING},
    **{("electrical", name): ("GY",) for name in MOVING},
    ("rotational", "translational"): ("TF",),
    ("translational", "rotational"): ("TF",),
}
VALUES = {"I": "inertia", "C": "stiffness", "R": "resistance", "TF": "ratio", "GY": "constant"}
RANGES = {"I": (0.2, 2.0), "C": (2.0, 40.0), "R": (0.2, 3.0), "TF": (0.5, 2.0), "GY": (0.3, 1.5)}
RELATIVE = 1e-9  # below, a singular value is 0


@dataclass
class RandomGraph:
    """A graph as a rig file writes it. joints: name -> its domain; sources: amplitude, frequency and phase."""

    joints: dict[str, str] = field(default_factory=dict)
    inertias: dict[str, float] = field(default_factory=dict)
    velocities: dict[str, float] = field(default_factory=dict)
    elements: dict[str, dict[str, Any]] = field(default_factory=dict)
    junctions: dict[str, int] = field(default_factory=dict)
    bonds: list[tuple[str, str]] = field(default_factory=list)
    fields: dict[str, np.ndarray] = field(default_factory=dict)  # H of the energy xᵀ H x / 2 of their states x
    values: dict[str, float] = field(default_factory=dict)
    sources: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    @property
    def section(self) -> dict[str, Any]:
        bonds = [f"{tail} -> {head}" for tail, head in self.bonds]  # `field.x` is a port
        return {"elements": self.elements, "junctions": self.junctions, "bonds": bonds}

    @property
    def storages(self) -> dict[str, str]:
        """By name, of fields each port: I or C."""
        found = {name: element["type"] for name, element in self.elements.items() if element["type"] in ("I", "C")}
        for name in self.fields:
            ports = self.elements[name]["ports"]
            found |= {f"{name}.{port}": "I" if "stores" in ports[port] else "C" for port in ports}
        return found

    @property
    def recorded(self) -> dict[str, str]:
        """Of every element of one port both sides, of every junction the common one."""
        ports = [name for name, element in self.elements.items() if element["type"] not in ("TF", "GY", "IC")]
        signals = [f"{name}.{side}" for name in ports for side in ("effort", "flow")]
        signals += [f"{name}.{'flow' if kind else 'effort'}" for name, kind in self.junctions.items()]
        return {signal.replace(".", "_"): signal for signal in signals}


def random_graph(seed: int) -> RandomGraph:
    """The graph of a seed: a tree that grows at random, and in some a loop."""
    return _Growing(np.random.default_rng(seed)).graph


class _Growing:
    def __init__(self, random: np.random.Generator) -> None:
        self.random, self.graph, self.domains = random, RandomGraph(), dict[str, str]()
        self.rigid = random.random() < 0.5  # more inertias that follow each other
        for number in range(random.integers(1, 4)):
            self._joint(f"j{number}")
        limit = random.integers(4, 21)
        while len(self.graph.elements) + len(self.graph.joints) < limit:
            self._grow()
        if random.random() < 0.3:
            self._loop()
        for name in self.graph.junctions:
            while sum(name in bond for bond in self.graph.bonds) < 2:
                self._one_port(
                    name, self._chosen({"R": 3, "C": 1} if self.graph.junctions[name] == 0 else {"R": 3, "I": 1})
                )

    def _chosen(self, weights: dict[str, float]) -> str:
        names, shares = list(weights), np.array(list(weights.values()), dtype=float)
        return str(self.random.choice(names, p=shares / shares.sum()))

    def _bond(self, a: str, b: str) -> None:
        self.graph.bonds.append((a, b) if self.random.random() < 0.5 else (b, a))

    def _junction(self, domain: str) -> str:
        name = f"n{len(self.graph.junctions)}"
        self.graph.junctions[name] = int(self.random.random() < (0.7 if self.rigid else 0.5))
        self.domains[name] = domain
        return name

    def _joint(self, name: str) -> None:
        graph, domain = self.graph, str(self.random.choice(MOVING))
        others = list(graph.junctions)
        graph.joints[name] = domain
        graph.inertias[name] = round(self.random.uniform(0.2, 2.0), 3)
        graph.velocities[name] = round(self.random.normal(), 3)
        own = self._junction(domain)
        self._bond(own, name)
        if others:
            self._connect(own, str(self.random.choice(others)))

    def _connect(self, a: str, b: str) -> None:
        first, second = self.domains[a], self.domains[b]
        if first == second and self.random.random() < 0.4:
            self._bond(a, b)
            return
        if self.random.random() < 0.5:
            a, b, first, second = b, a, second, first
        kind = str(self.random.choice(BETWEEN[first, second]))
        name = self._element(kind, domain=first, to=second)
        if self.random.random() < 0.2:
            element = self.graph.elements[name]
            element["law"] = f"{element.pop(VALUES[kind])} + 0 * t"
        self.graph.bonds += [(a, name), (name, b)]

    def _element(self, kind: str, **keys: Any) -> str:
        value = round(self.random.uniform(*RANGES[kind]), 3)
        if kind in ("TF", "GY"):
            value *= self.random.choice([-1.0, 1.0])
        name = f"{kind.lower()}{len(self.graph.elements)}"
        self.graph.elements[name] = {"type": kind, **keys, VALUES[kind]: float(value)}
        self.graph.values[name] = float(value)
        return name

    def _one_port(self, junction: str, kind: str) -> None:
        domain, random = self.domains[junction], self.random
        if kind in ("Se", "Sf"):
            name = f"{kind.lower()}{len(self.graph.elements)}"
            amplitude, frequency, phase = (round(random.uniform(*of), 3) for of in ((0.3, 3), (0.5, 4), (0, 6)))
            self.graph.sources[name] = amplitude, frequency, phase
            law = f"{amplitude} * sin({frequency} * t + {phase})"
            self.graph.elements[name] = {"type": kind, "domain": domain, "law": law}
            self._bond(junction, name)
            return
        initial = {"initial": round(random.normal(), 3) * (1.0 if kind == "I" else 0.2)} if kind in ("I", "C") else {}
        self.graph.bonds.append((junction, self._element(kind, domain=domain, **initial)))

    def _grow(self) -> None:
        random = self.random
        if random.random() < 0.04:
            self._field()
            return
        junction = str(random.choice(list(self.graph.junctions)))
        if random.random() < 0.3:
            domain = str(
                random.choice([of for of in (*MOVING, "electrical") if (self.domains[junction], of) in BETWEEN])
            )
            self._connect(junction, self._junction(domain))
        elif self.graph.junctions[junction] == 1:
            self._one_port(junction, self._chosen({"I": 9 if self.rigid else 3, "C": 2, "R": 3, "Se": 2, "Sf": 0.2}))
        else:
            self._one_port(junction, self._chosen({"I": 1.5, "C": 1 if self.rigid else 3, "R": 3, "Se": 0.1, "Sf": 1}))

    def _field(self) -> None:
        """A storage of two ports whose energy is a positive definite form of their states."""
        random, name = self.random, f"ic{len(self.graph.elements)}"
        ends = [str(random.choice(list(self.graph.junctions))) for _ in range(2)]
        stores = [{"stores": "momentum"} if self.graph.junctions[end] else {} for end in ends]
        a, b, share = random.uniform(2.0, 20.0), random.uniform(2.0, 20.0), random.uniform(-0.7, 0.7)
        H = np.array([[a, share * np.sqrt(a * b)], [share * np.sqrt(a * b), b]]).round(3)
        self.graph.fields[name] = H
        self.graph.elements[name] = {
            "type": "IC",
            "ports": {
                port: {"domain": self.domains[end], "initial": round(random.normal(0.0, 0.2), 3), **stored}
                for port, end, stored in zip("xy", ends, stores, strict=True)
            },
            "energy": f"{H[0, 0]} * x^2 / 2 + {H[0, 1]} * x * y + {H[1, 1]} * y^2 / 2",
        }
        self.graph.bonds += [(end, f"{name}.{port}") for port, end in zip("xy", ends, strict=True)]

    def _loop(self) -> None:
        pairs = [(a, b) for a in self.graph.junctions for b in self.graph.junctions if a < b]
        bonded = {frozenset(bond) for bond in self.graph.bonds}
        pairs = [
            (a, b)
            for a, b in pairs
            if (self.domains[a], self.domains[b]) in BETWEEN and frozenset((a, b)) not in bonded
        ]
        if pairs:
            self._connect(*pairs[self.random.integers(len(pairs))])


class LinearSystem:
    """E ẏ = A y of all bonds of a graph. given: the joints move as they are given, which leaves their equations of
    motion and positions out, one for each."""

    def __init__(self, graph: RandomGraph, given: bool = False) -> None:
        self.graph, self.given = graph, given
        bonds = range(len(graph.bonds))
        names = [(side, bond) for bond in bonds for side in ("e", "f")]
        names += [("stored", name) for name in graph.storages]
        names += [(what, joint) for joint in graph.joints for what in ("q", "v")]
        names += [(wave, name) for name in graph.sources for wave in ("sin", "cos")]
        self.column = {name: k for k, name in enumerate(names)}
        self.rows: list[tuple[dict[Any, float], dict[Any, float]]] = []  # (of ẏ, of y): Σ = Σ
        for name, element in graph.elements.items():
            self._element(name, element)
        for name, kind in graph.junctions.items():
            self._junction(name, kind)
        for name, inertia in graph.inertias.items():
            self._joint(name, inertia)

    def _says(self, y: dict[Any, float], rates: dict[Any, float] | None = None) -> None:
        self.rows.append((rates or {}, y))

    def _at(self, name: str) -> list[tuple[int, float]]:
        """(bond, +1 where it leads to the element, else −1)"""
        return [
            (k, 1.0 if head == name else -1.0)
            for k, (tail, head) in enumerate(self.graph.bonds)
            if name in (tail, head)
        ]

    def bond_of(self, name: str) -> int:
        """The first bond of an element or a port."""
        return self._at(name)[0][0]

    def _element(self, name: str, element: dict[str, Any]) -> None:
        kind, at = element["type"], self._at(name)
        if kind == "IC":
            self._field(name)
            return
        if kind in ("TF", "GY"):
            ((into, _),) = [end for end in at if end[1] > 0]
            ((out, _),) = [end for end in at if end[1] < 0]
            ratio = self.graph.values[name]
            pairs = (("e", "e"), ("f", "f")) if kind == "TF" else (("e", "f"), ("f", "e"))
            self._says({("e", into): 1.0, (pairs[0][1], out): -ratio})
            self._says(
                {("e", out): 1.0, ("f", into): -ratio} if kind == "GY" else {("f", out): 1.0, ("f", into): -ratio}
            )
            return
        ((bond, _),) = at
        if kind == "R":
            self._says({("e", bond): 1.0, ("f", bond): -self.graph.values[name]})
        elif kind == "I":
            self._says({("e", bond): 1.0}, {("stored", name): 1.0})
            self._says({("stored", name): 1.0, ("f", bond): -self.graph.values[name]})
        elif kind == "C":
            self._says({("f", bond): 1.0}, {("stored", name): 1.0})
            self._says({("e", bond): 1.0, ("stored", name): -self.graph.values[name]})
        else:
            amplitude, frequency, _ = self.graph.sources[name]
            side = "e" if kind == "Se" else "f"
            self._says({(side, bond): 1.0, ("sin", name): -amplitude})
            self._says({("cos", name): frequency}, {("sin", name): 1.0})
            self._says({("sin", name): -frequency}, {("cos", name): 1.0})

    def _field(self, name: str) -> None:
        ports = [f"{name}.{port}" for port in "xy"]
        for port, row in zip(ports, self.graph.fields[name], strict=True):
            side, rate = ("e", "f") if self.graph.storages[port] == "C" else ("f", "e")
            bond = self.bond_of(port)
            self._says({(rate, bond): 1.0}, {("stored", port): 1.0})
            self._says({(side, bond): 1.0} | {("stored", other): -h for other, h in zip(ports, row, strict=True)})

    def _junction(self, name: str, kind: int) -> None:
        common, summed = ("e", "f") if kind == 0 else ("f", "e")
        (first, _), *rest = at = self._at(name)
        for bond, _ in rest:
            self._says({(common, bond): 1.0, (common, first): -1.0})
        self._says({(summed, bond): sign for bond, sign in at})

    def _joint(self, name: str, inertia: float) -> None:
        ((bond, sign),) = self._at(name)
        self._says({("f", bond): 1.0, ("v", name): -1.0})
        self._says({("v", name): 1.0}, {("q", name): 1.0})
        if not self.given:
            self._says({("e", bond): sign}, {("v", name): inertia})

    @cached_property
    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        n = len(self.column)
        E, A = np.zeros((len(self.rows), n)), np.zeros((len(self.rows), n))
        for k, (rates, y) in enumerate(self.rows):
            for name, factor in rates.items():
                E[k, self.column[name]] += factor
            sign = 1.0 if rates else -1.0
            for name, factor in y.items():
                A[k, self.column[name]] += sign * factor
        return E, A

    def is_regular(self) -> bool:
        """Whether s E − A is of full rank at some s, in the rows and in the columns that are not given."""
        E, A = self.matrices
        if self.given:
            kept = [k for name, k in self.column.items() if name[0] != "v"]
            E, A = E[:, kept], A[:, kept]
        values = np.linalg.svd(0.83 * E - A, compute_uv=False)
        return E.shape[0] == E.shape[1] and bool(values[-1] > RELATIVE * values[0])

    def inertia_at(self, s: float) -> np.ndarray:
        """The efforts that the joints need over their accelerations (m, m), for motions e^st."""
        E, A = self.matrices
        joints = list(self.graph.joints)
        given = [self.column["v", name] for name in joints]
        kept = [k for k in range(len(self.column)) if k not in given]
        matrix = s * E - A
        y = np.linalg.solve(matrix[:, kept], -matrix[:, given])
        ends = [self._at(name)[0] for name in joints]
        rows = [kept.index(self.column["e", bond]) for bond, _ in ends]
        return -y[rows] * np.array([[sign] for _, sign in ends]) / s

    def cannot_be(self) -> bool:
        """Whether a graph has no single solution for all motions that its joints may be given: it has none or many; it
        needs the rate of an acceleration, as its efforts over accelerations grow without end; parts of it cannot move
        or bear anything, whatever they begin with; or the states of its fields are not independent."""
        if not self.is_regular():
            return True
        slow, fast = (np.abs(self.inertia_at(s)).max() for s in (1e4, 1e6))
        sizes = np.abs(self.subspace).max(axis=1)
        bonds = [k for name, k in self.column.items() if name[0] in ("e", "f")]
        if fast > 50.0 * slow > RELATIVE or sizes[bonds].min() < RELATIVE:
            return True
        return bool(np.linalg.matrix_rank(self.subspace[self._chosen], tol=RELATIVE) < len(self._chosen))

    @property
    def _chosen(self) -> list[int]:
        """Places of what must be free to begin as it is given: fields, beside the motion of joints and sources."""
        fields = [("stored", f"{name}.{port}") for name in self.graph.fields for port in "xy"]
        return [k for name, k in self.column.items() if name in fields or name[0] in ("v", "sin", "cos")]

    @cached_property
    def subspace(self) -> np.ndarray:
        """V (n, k): an orthonormal basis of where solutions lie."""
        E, A = self.matrices
        V = np.eye(len(self.column))
        while True:
            image = _orth(E @ V)
            left = A @ V - image @ (image.T @ (A @ V))
            z = null_space(left, rcond=RELATIVE) if np.linalg.norm(left) > RELATIVE else np.eye(V.shape[1])
            if z.shape[1] == V.shape[1]:
                return V
            V = _orth(V @ z)

    @cached_property
    def generator(self) -> np.ndarray:
        """G of ż = G z, y = V z."""
        E, A = self.matrices
        V = self.subspace
        return np.linalg.lstsq(E @ V, A @ V, rcond=None)[0]

    @property
    def fastest(self) -> float:
        """The largest |eigenvalue| of its motions [1/s]."""
        return float(max(np.abs(np.linalg.eigvals(self.generator)), default=0.0))

    def after(self, duration: float, start: np.ndarray) -> np.ndarray:
        """y after a time, from a y in the subspace."""
        return self.subspace @ (expm(self.generator * duration) @ (self.subspace.T @ start))


def _orth(matrix: np.ndarray) -> np.ndarray:
    return orth(matrix, rcond=RELATIVE) if matrix.size else matrix
