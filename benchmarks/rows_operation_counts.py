"""Multiplications and additions of one evaluation of the forward dynamics, by formulation and number of bodies.

Counted in the code that is generated: without products with 0 and 1, common subexpressions once. Sines, cosines and
roots are not counted, nor are they in published figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.chains import general_chain, planar_chain, simple_chain, sympy_equations
from benchmarks.linkages import ladder, parallelograms
from benchmarks.paired_timing import Budget, Samples
from benchmarks.peers import relative_difference
from benchmarks.robots import random_state
from benchmarks.rows import BenchCase, Measurement
from cosim.core.compile import Routine
from cosim.core.types import Numeric
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.multibody import Model, assembly

REFERENCE = "separate_bodies"
# those that develop the equations of a tree of any joints; without loops, dependent coordinates are composite bodies
OURS = (
    "augmented_bodies",
    "composite_bodies",
    "elastic_kane",
    "gauss",
    "kane",
    "lagrange",
    "newton_euler",
    "wittenburg",
)
SHORT, LONG = tuple(range(1, 11)), tuple(range(1, 31))
WITH_LOOPS = "cartesian", "dependent_coordinates", "planar_bodies", *(name for name in OURS if name != "elastic_kane")
LOOPS = (1, 2, 3, 4, 6)  # four-bars on top of each other
SHOWN = (1, 2, 3, 6, 10, 15, 20, 25, 30)
SYMPY_BODIES = 4

MULTIPLICATIONS, ADDITIONS = ("MUL", "DIV"), ("ADD", "SUB")
SYMPY_MULTIPLICATIONS = (*MULTIPLICATIONS, "POW")  # squares

# cited, not counted again
HAND_MADE = "Featherstone, Rigid Body Dynamics Algorithms, 2008, table 10.1"
# (multiplications, additions) for n bodies on revolute joints and a fixed base
PUBLISHED: dict[str, tuple[str, Callable[[int], tuple[int, int]]]] = {
    "forward_dynamics": (
        f"ABA by hand, (224n − 259) m + (205n − 248) a: {HAND_MADE}",
        lambda n: (224 * n - 259, 205 * n - 248),
    ),
    "inverse_dynamics": (
        f"RNEA by hand, (93n − 108) m + (81n − 100) a: {HAND_MADE}",
        lambda n: (93 * n - 108, 81 * n - 100),
    ),
}


def counted(kinds: Counter[str], multiplications: Sequence[str] = MULTIPLICATIONS) -> tuple[int, int]:
    """(multiplications with divisions, additions with subtractions)"""
    return sum(kinds[kind] for kind in multiplications), sum(kinds[kind] for kind in ADDITIONS)


def operations(fn: Callable[..., Numeric], sizes: Sequence[int]) -> tuple[int, int]:
    """`counted` of a function of vectors of these sizes."""
    routine = Routine(fn, [(size,) for size in sizes], "counted")
    return counted(Counter(node[0] for node in routine.unfused.nodes))


@cache
def of_formulation(name: str, chain: Callable[[int], Model], n: int) -> int:
    """Operations of the accelerations of a chain."""
    formulation = load_formulation(name, chain(n).equations)
    return sum(operations(lambda q, v, tau: formulation.forward_dynamics(q, v, tau), (n, n, n)))


def by_bodies(name: str, chain: Callable[[int], Model], sizes: Sequence[int], budget: Budget) -> Measurement:
    """Beside the separate bodies for the longest of the chains; the note has the counts of others, and up to how many
    bodies they are fewer than in other formulations."""
    sizes = sizes[: budget.of(len(sizes), 3)]
    n, model = sizes[-1], chain(sizes[-1])
    counts = [f"{of_formulation(name, chain, size)} for {size}" for size in sizes if size in SHOWN]
    state = random_state(model)
    found = np.asarray(load_formulation(name, model.equations).forward_dynamics(*state))
    difference = relative_difference(found, np.asarray(model.equations.forward_dynamics(*state)))
    note = f"{', '.join(counts)} bodies{crossovers(name, chain, sizes)}"
    ours, reference = of_formulation(name, chain, n), of_formulation(REFERENCE, chain, n)
    return Measurement(_samples(ours, reference), difference, note, growth=True)


def crossovers(name: str, chain: Callable[[int], Model], sizes: Sequence[int]) -> str:
    """The formulations that it has fewer operations than for two bodies and not for the longest chain, and the last
    number of bodies for which it has."""
    found = []
    for other in [REFERENCE, *OURS]:
        fewer = [n for n in sizes[1:] if of_formulation(name, chain, n) < of_formulation(other, chain, n)]
        if fewer and fewer[0] == 2 and fewer[-1] < sizes[-1]:
            found.append(f"{other} to {fewer[-1]}")
    return f"; fewer than {', '.join(found)}" if found else ""


@cache
def planar_ladder(n: int) -> Model:
    """n four-bars on top of each other, with the rows that act in their plane."""
    linkage = parallelograms(ladder(n))
    model = linkage.model
    return model.without(assembly.find_redundant(model, linkage.q, np.zeros(model.nv, dtype=bool)))


@cache
def of_ladder(name: str, n: int) -> int:
    """Operations of the accelerations of n four-bars on top of each other."""
    model = planar_ladder(n)
    formulation = load_formulation(name, model.equations)
    return sum(operations(lambda q, v, tau: formulation.forward_dynamics(q, v, tau), (model.nv,) * 3))


def by_loops(name: str, sizes: Sequence[int], budget: Budget) -> Measurement:
    """Beside the separate bodies for the longest ladder; the note has the counts of all, and up to how many loops they
    are fewer than for the separate bodies."""
    sizes = sizes[: budget.of(len(sizes), 2)]
    n, counts = sizes[-1], [of_ladder(name, size) for size in sizes]
    model, state = planar_ladder(n), parallelograms(ladder(n)).state
    found = np.asarray(load_formulation(name, model.equations).forward_dynamics(*state))
    difference = relative_difference(found, np.asarray(model.equations.forward_dynamics(*state)))
    fewer = [size for size, count in zip(sizes, counts, strict=True) if count < of_ladder(REFERENCE, size)]
    note = ", ".join(f"{count} for {size}" for size, count in zip(sizes, counts, strict=True)) + " loops"
    note += f"; fewer than {REFERENCE} to {fewer[-1]}" if fewer else f"; never fewer than {REFERENCE}"
    return Measurement(_samples(counts[-1], of_ladder(REFERENCE, n)), difference, note, growth=True)


def published(algorithm: str, n: int, _: Budget) -> Measurement:
    """Ours beside the counts of hand-made code."""
    compute, formula = getattr(general_chain(n).equations, algorithm), PUBLISHED[algorithm][1]
    ours = operations(lambda q, v, x: compute(q, v, x), (n, n, n))
    note = "multiplications and additions: ours {} and {}, published {} and {}".format(*ours, *formula(n))
    return Measurement(_samples(sum(ours), sum(formula(n))), note=note)


def beside_sympy(name: str, method: str, n: int, budget: Budget) -> Measurement:
    """The operations of A and B of A q̈ = B, before they are solved."""
    import sympy

    n = budget.of(n, 2)
    model = simple_chain(n)
    formulation: Any = load_formulation(name, model.equations)

    def matrices(q: Numeric, v: Numeric, tau: Numeric) -> tuple[Numeric, Numeric]:
        A, B, *_ = formulation.matrices(q, v)
        return A, B + tau

    ours = sum(operations(matrices, (n, n, n)))
    A, B, plain = sympy_equations(n, method)
    shared, (A_rest, B_rest) = sympy.cse([A, B])
    kinds = _kinds(sympy.count_ops([value for _, value in shared] + [A_rest, B_rest], visual=True))
    state = random_state(model)
    evaluate: Any = sympy.lambdify(plain, [A, B], cse=True)
    a, b = evaluate(*np.concatenate(state))
    theirs = np.linalg.solve(np.array(a, dtype=float), np.array(b, dtype=float).ravel())
    difference = relative_difference(model.forward_dynamics(*state), theirs)
    return Measurement(_samples(ours, sum(counted(kinds, SYMPY_MULTIPLICATIONS))), difference)


def _kinds(total: Any) -> Counter[str]:
    """The operations that sympy counts, by name."""
    return Counter({str(kind): int(number) for kind, number in total.as_coefficients_dict().items()})


def _samples(ours: int, other: int) -> Samples:
    return Samples(np.array([float(ours)]), np.array([float(other)]))


CASES = (
    *(
        BenchCase(
            f"operations {name}{suffix}",
            f"{chain.__name__.replace('_', ' ')} of {sizes[-1]} bodies: multiplications and additions by '{name}'",
            partial(by_bodies, name, chain, sizes),
            REFERENCE,
            unit="ops",
            on_request=sizes is LONG,
        )
        for suffix, sizes in (("", SHORT), (" long", LONG))
        for name, chain in (*((name, general_chain) for name in OURS), ("planar_bodies", planar_chain))
    ),
    BenchCase(
        "operations cartesian",
        f"general chain of {SHORT[-1]} bodies: multiplications and additions by 'cartesian'",
        partial(by_bodies, "cartesian", general_chain, SHORT),
        REFERENCE,
        unit="ops",
    ),
    *(
        BenchCase(
            f"operations {name} loops",
            f"{LOOPS[-1]} four-bars on top of each other: multiplications and additions by '{name}'",
            partial(by_loops, name, LOOPS),
            REFERENCE,
            unit="ops",
        )
        for name in WITH_LOOPS
    ),
    *(
        BenchCase(
            f"operations {algorithm} published",
            f"general chain of {SHORT[-1]} bodies: multiplications and additions",
            partial(published, algorithm, SHORT[-1]),
            source,
            unit="ops",
        )
        for algorithm, (source, _) in PUBLISHED.items()
    ),
    *(
        BenchCase(
            f"operations {name} sympy",
            f"chain of {SYMPY_BODIES} bodies: A and B of A q̈ = B by '{name}'",
            partial(beside_sympy, name, method, SYMPY_BODIES),
            f"sympy.physics.mechanics.{method}, common subexpressions eliminated",
            unit="ops",
        )
        for name, method in (("kane", "KanesMethod"), ("lagrange", "LagrangesMethod"))
    ),
)
